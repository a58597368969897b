"""What a session's messages say, as stored, and questions about them; pure but for `session_history`."""
