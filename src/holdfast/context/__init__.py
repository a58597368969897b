"""What the model is given besides the conversation: sources, their text, its changes. Only loading waits."""
