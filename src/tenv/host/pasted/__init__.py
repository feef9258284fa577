"""Read pasted descriptions of a machine as a host."""
