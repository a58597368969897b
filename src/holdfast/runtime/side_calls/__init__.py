"""Small completions beside the work (title, prompt summary), which never delay or fail a turn."""
