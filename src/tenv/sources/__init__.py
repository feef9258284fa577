"""Where files come from: one module a kind of source, siblings behind one interface."""
