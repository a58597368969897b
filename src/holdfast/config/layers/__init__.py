"""Settings of several places become one: merged, checked, finished, and shown without secrets."""
