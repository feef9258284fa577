"""Activation scripts: one module per family of shells, behind one interface."""
