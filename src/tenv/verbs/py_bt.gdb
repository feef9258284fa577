# Read by gdb: `py-bt` by way of pystack, which needs no debug information, where CPython's own can't work.
python
import subprocess

import gdb


class _PystackFrames(gdb.Command):
    """Show the Python frames of the process that is debugged, innermost last, by way of pystack."""

    def __init__(self):
        super().__init__("py-bt", gdb.COMMAND_STACK, gdb.COMPLETE_NONE)

    def invoke(self, argument, from_tty):
        pid = gdb.selected_inferior().pid
        if not pid:
            raise gdb.GdbError("no process runs: `run` starts it")
        if not tenv_pystack:
            raise gdb.GdbError(f"py-bt needs {tenv_lacks}, or pystack: {tenv_hint}")
        # gdb holds the process already, so pystack reads its memory without stopping it.
        done = subprocess.run(
            [tenv_pystack, "remote", "--no-block", "--no-color", *gdb.string_to_argv(argument), str(pid)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        gdb.write(done.stdout)
        if done.returncode:
            raise gdb.GdbError(done.stderr.strip() or f"pystack ended with status {done.returncode}")


_PystackFrames()
end
