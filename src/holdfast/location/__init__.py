"""The world around a session: projects, files, processes."""
