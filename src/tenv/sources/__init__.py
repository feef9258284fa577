"""Where files come from: one folder per source, behind one interface."""
