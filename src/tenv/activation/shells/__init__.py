"""Activation as text for a shell: one module a family of shells, siblings behind one interface."""
