"""`holdfast mcp`: the servers whose tools agents may call."""
