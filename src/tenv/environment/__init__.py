"""A prefix on disk: its state, the owner of each file, integrity."""
