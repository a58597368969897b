"""Which endpoint and which secret a model is reached with."""
