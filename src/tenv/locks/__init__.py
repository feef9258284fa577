"""Locks as values and as files; satisfaction of a manifest; difference and merge of two locks."""
