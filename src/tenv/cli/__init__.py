"""The command line: one file a command, which parses, calls a workflow and renders what it returns."""
