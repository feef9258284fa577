"""Manifests: where they are found, how they are read, and what they ask for."""
