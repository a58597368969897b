"""How a request becomes HTTP and its answer becomes events, for each of the four protocols."""
