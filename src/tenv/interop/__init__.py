"""The same lock in the formats of other tools: siblings behind one interface."""
