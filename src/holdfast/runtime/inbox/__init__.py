"""Prompts, from admission until the model sees them."""
