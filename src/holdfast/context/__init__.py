"""What the model is told besides the conversation: sources, their text, and how it changes. Pure."""
