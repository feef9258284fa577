"""Creates an environment from a lock, as a list of named steps."""
