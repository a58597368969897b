"""Model providers: requests, events, lowering, the wire adapters, the catalogue of models and prices."""
