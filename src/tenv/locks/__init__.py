"""A lock as a value, its file, whether it satisfies its manifest, and what differs between two."""
