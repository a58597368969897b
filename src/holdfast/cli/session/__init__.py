"""`holdfast session …`: one command a file."""
