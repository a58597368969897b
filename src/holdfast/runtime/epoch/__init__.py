"""Context Epochs: what the model has been told, and why the next request may begin differently."""
