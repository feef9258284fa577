"""Manifests: the search for them, their files, and their requests."""
