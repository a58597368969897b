"""What is asked of a model, and what comes back, in the form that all wires share."""
