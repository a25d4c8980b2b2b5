"""Tasks done on other machines: the queue, the coordinator that sends and merges, and the worker."""
