"""`holdfast models`: what there is to talk to."""
