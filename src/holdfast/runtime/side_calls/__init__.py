"""Small texts beside the work (title, prompt summary), which never block or fail a turn."""
