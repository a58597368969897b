"""The tool calls of an answer: asked about, run, and settled exactly once."""
