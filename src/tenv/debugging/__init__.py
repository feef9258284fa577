"""What debuggers need to know: the Python behind a program, its processes, the rights to attach, what goes wrong."""
