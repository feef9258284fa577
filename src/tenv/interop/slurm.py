"""slurm: a prolog that drains a node on which a target does not run, before a job that asks for the target starts.

A job asks by the feature that `tenv check --against … --slurm` prints. slurmd runs the prolog as root on each node of a
job, before its first step; a prolog that fails drains the node and queues the job again
(https://slurm.schedmd.com/prolog_epilog.html).
"""

import shlex

from tenv.interop.interface import FILE, Exported, Format, Subject

_HOME = "/etc/slurm"

_PROLOG = """\
#!/bin/sh
# Made by `tenv export slurm @NAME@`. In slurm.conf: Prolog=/etc/slurm/@FILE@
# Before a job with `--constraint=@FEATURE@` starts, the node has to run @NAME@ now, as it did when it
# got the feature: else it is drained, with the finding as its reason. Where tenv does not answer, the job starts.
PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin
HOME=${HOME:-/}
export PATH HOME
case "&${SLURM_JOB_CONSTRAINTS-}&" in
*[!A-Za-z0-9._-]@FEATURE@[!A-Za-z0-9._-]*) ;;
*) exit 0 ;;
esac
answer=$({ cd @FOLDER@ 2>/dev/null || cd /; } && TENV_OFFLINE=1 "${TENV:-tenv}" check @NAME@ --quiet 2>&1)
[ $? -eq 1 ] || exit 0
case $answer in
*"run:   yes"*) exit 0 ;;
*"run:   "*) ;;
*) exit 0 ;;
esac
# Errors come before warnings, and drivers and GPUs before compilers.
found=$(printf '%s\\n' "$answer" | grep -E '^(error|warning)\\[' | LC_ALL=C sort | head -n 4)
reason=$(printf '%s\\n' "$found" | cut -c 1-200 | paste -s -d '|' -)
scontrol update NodeName="$SLURMD_NODENAME" State=DRAIN Reason="tenv: @NAME@ does not run: $reason"
exit 1
"""


def _export(subject: Subject) -> Exported:
    name = subject.manifest.name
    feature, file = f"tenv-{name}", f"tenv-{name}-prolog.sh"
    folder = f"{_HOME}/tenv" if subject.own else "/"
    words = {"@NAME@": name, "@FEATURE@": feature, "@FILE@": file, "@FOLDER@": folder}
    text = _PROLOG
    for mark, word in words.items():
        text = text.replace(mark, word)
    notes = [
        f"run: install -m 755 {FILE} {_HOME}/{file}  on each node, as root, and name it as Prolog in slurm.conf",
        "slurmd runs it as root: tenv has to be on root's PATH, in a folder that root alone writes (/usr/local/bin)",
        f"`tenv check {name} --against - --slurm` prints the feature of each node that can run it",
    ]
    if subject.own:
        parts = shlex.join(f"{subject.own}/{part}" for part in ("manifests", "locks"))
        notes.insert(1, f"run: mkdir -p {folder} && cp -r {parts} {folder}  likewise: root knows no other {name}")
    return Exported({file: text.encode()}, notes=tuple(notes))


FORMAT = Format(name="slurm", export=_export, holds_lock=False)
