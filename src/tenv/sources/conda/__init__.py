"""Conda packages: solved and fetched by rattler."""
