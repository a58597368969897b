"""The process that builds the box around itself and becomes the command. It uses few modules of the standard
library, and no other: every import is paid by every command. Whatever fails, the command does not run (exit
status 125).
"""
