"""`holdfast providers`: who answers, and with which key."""
