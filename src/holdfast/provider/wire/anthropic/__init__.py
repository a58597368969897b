"""Anthropic's Messages wire. `adapter.py` is the door; the wire's names stay in this folder."""
