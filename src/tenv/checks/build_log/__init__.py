"""The log of a build: what of it counts, and the cause of a failure."""
