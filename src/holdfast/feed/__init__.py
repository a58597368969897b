"""The feed: how what happened reaches whoever listens, live and after an absence (design laws 3 to 5)."""
