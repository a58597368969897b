"""How the network is spoken to: one byte-stream function, the event-stream parser, the address guard."""
