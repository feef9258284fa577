"""Choosing the files of a lock."""
