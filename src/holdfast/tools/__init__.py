"""Tools at work: which there are, how a call is carried out, and what the model gets to see of its output."""
