"""The feed: how what happened reaches listeners, live and after an absence (design laws 3 to 5)."""
