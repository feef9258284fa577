"""The command line: one file per command, which parses options, calls a verb and prints its result."""
