"""For debuggers: the Python behind a program, its processes, the right to attach, traps of imports."""
