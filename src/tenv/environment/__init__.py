"""A prefix on disk: its state, whose each file is, and whether the files are intact."""
