"""Sessions in other forms: the portable file, and what OpenCode keeps."""
