"""The command line: thin shells over sessions, lazily imported, since start-up is felt at every command."""
