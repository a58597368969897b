"""The tools that come with Holdfast, one a file."""
