"""The Chat Completions wire, OpenAI's own and every compatible server's. `adapter.py` is the door."""
