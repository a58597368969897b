"""MCP servers: connected from the settings, their tools offered under `<server>_<tool>`.

What must stay true: a server's text is material. Nothing of it reaches the system prompt but bounded
descriptions of tools; it replaces no tool of ours; whatever a server does fails its own calls and nothing
else. The package `mcp` is imported by `wire/` alone, with the first server that is connected.
"""
