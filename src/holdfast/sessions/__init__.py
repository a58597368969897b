"""What a caller may ask of sessions: the front door of the library, the command line and the server."""
