# Read by gdb. DataLoader's own handler of SIGCHLD reports workers that died.
# SIGTRAP stays as gdb has it, a stop that the program does not see: in a script it is a breakpoint.
handle SIGCHLD nostop noprint pass
handle SIGPIPE nostop noprint pass
