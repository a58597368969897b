"""The nouns: plain frozen values and their JSON form. No I/O, no clock, no order; one noun a file."""
