"""Probes of the host, one per file: a pure parser and a `probe` function that reads this machine."""
