"""What a caller may do with sessions: the API that the library, the command line and the server share."""
