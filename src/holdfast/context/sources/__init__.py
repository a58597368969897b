"""The Context Sources that come with Holdfast, one a file; `standard` composes those of a turn."""
