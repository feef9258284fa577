"""Export and import of other tools' formats: one module per format behind one interface."""
