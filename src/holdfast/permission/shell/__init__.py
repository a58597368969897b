"""What a shell command would do, read without running it: its simple commands, and the paths it touches."""
