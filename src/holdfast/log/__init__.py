"""The log: one line an event, for the operator of a process. Ids, counts, reasons; no content, no secret."""
