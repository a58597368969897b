"""One answer of the model: provider events in, records out, however it ends."""
