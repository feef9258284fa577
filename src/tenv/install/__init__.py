"""Bringing a prefix to what a lock says, one step after another."""
