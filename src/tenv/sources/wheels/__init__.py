"""Wheels: resolved and installed by uv."""
