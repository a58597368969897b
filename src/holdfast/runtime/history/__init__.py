"""A session's messages as stored, and questions about them; pure except for `session_history`."""
