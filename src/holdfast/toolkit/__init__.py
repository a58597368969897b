"""How a tool is declared, and what it is given when it runs."""
