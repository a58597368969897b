"""The protocol: the only folder that imports the package `mcp`."""
