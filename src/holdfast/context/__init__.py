"""What the model is given besides the conversation: sources, their text, how it changes. Only loading waits."""
