"""The Chat Completions wire, OpenAI's own and everybody else's. `adapter.py` is the door."""
