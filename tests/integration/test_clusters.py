"""The commands of docs/guide/clusters.md, each run on servers of its own: Slurm, file systems, users and storages.

Programs: Debian's slurm-wlm, munge, pdsh. Nothing of the system's own services is used or changed.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.integration.bench import check, own_environment
from tests.support.projects import SOURCE

pytestmark = pytest.mark.real

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "clusters.md").read_text(encoding="utf-8")
SMALL = """\
platforms = ["linux-64"]
python = "3.11.*"
[pypi-dependencies]
cmake = "*"
ninja = "*"
[activation.env]
CXXFLAGS = { append = "-include c.h -include d.h" }
"""
"""The target `cpu` of these tests, which is made in seconds."""

SETTINGS = Path("/etc/tenv/config.toml")
SLURM = ("munged", "slurmctld", "slurmd", "srun", "pdsh")


def commands(section: str) -> list[str]:
    """Return the commands of a section of the page, in their order."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines), lines
    return [line.removeprefix("$ ") for line in lines]


@dataclass
class Site:
    """A folder with tenv on PATH, and `/shared` in it.

    Attributes:
        folder: The folder.
        environ: The variables of its programs.
    """

    folder: Path
    environ: dict[str, str]

    def words(self, command: str) -> list[str]:
        """Return the words that run a command of the page in bash, with `/shared` in the folder."""
        line = re.sub(r"(?<![\w/])/shared\b", str(self.folder / "shared"), command)
        return ["bash", "-c", f"set -o pipefail\n{line}"]

    def run(self, command: str, status: int | None = 0, timeout: float = 600) -> str:
        """Run a command of the page; return its output.

        Args:
            command: The command.
            status: The status that it has to have; None for any.
            timeout: The most seconds.
        """
        done = subprocess.run(
            self.words(command),
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert status is None or done.returncode == status, f"{command}: status {done.returncode}\n{done.stdout}"
        return done.stdout


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A folder that every user can enter, with tenv on PATH."""
    folder = Path(tempfile.mkdtemp(prefix="site-"))  # pytest's own folders are closed again by its next session
    folder.chmod(0o755)
    environ = own_environment(folder)
    program = folder / "bin" / "tenv"
    # A copy: the checkout's own folder may be closed to other users.
    check(
        [find_uv_bin(), "pip", "install", "-q", "--python", sys.executable, "--target", folder / "lib", SOURCE.parent],
        folder,
        environ,
    )
    for name in ("bin", "shared/mnt", "work", "manifests"):
        (folder / name).mkdir(parents=True)
    (folder / "manifests" / "cpu.toml").write_text(SMALL)
    python = Path(f"/usr/bin/python3.{sys.version_info.minor}")  # which every user can run
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={folder}/lib exec {python if python.is_file() else sys.executable} -m tenv "$@"\n'
    )
    program.chmod(0o755)
    environ["PATH"] = f"{program.parent}{os.pathsep}{environ['PATH']}"
    yield Site(folder, environ)
    shutil.rmtree(folder, ignore_errors=True)


def shown(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Return the inode, the rights, the size and the time of the last write of every file and folder below a folder.

    The time of the inode's last change is no proof: an environment elsewhere that links the same files of the cache
    changes it.
    """
    found = {}
    for path in (folder, *folder.rglob("*")):
        info = path.lstat()
        found[str(path)] = (info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns)
    return found


def by_users(site: Site, lines: Sequence[str], count: int) -> list[str]:
    """Run commands of the page at once, by two users in turn with homes of their own; return their outputs."""
    running = []
    for number in range(count):
        user = 64001 + number % 2
        home = site.folder / f"home{user}"
        if not home.is_dir():
            home.mkdir()
            os.chown(home, user, user)
        environ = {"HOME": str(home), "PATH": site.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
        running.append(
            subprocess.Popen(
                [*as_user, *site.words(lines[number % len(lines)])],
                cwd=home,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return [f"{one.communicate(timeout=300)[0]}status {one.returncode}" for one in running]


@pytest.fixture
def vouched(site: Site) -> Iterator[Site]:
    """A site whose folders root has named as safe; the file is removed again."""
    assert os.geteuid() == 0, "two users and a mount need root"
    assert not SETTINGS.exists(), f"{SETTINGS} is of this machine, and the test would overwrite it"
    made = not SETTINGS.parent.exists()
    SETTINGS.parent.mkdir(exist_ok=True)
    try:
        site.run(commands("Share")[1])
        yield site
    finally:
        SETTINGS.unlink(missing_ok=True)
        if made:
            SETTINGS.parent.rmdir()


def test_sixteen_processes_of_two_users_share_an_environment(vouched: Site) -> None:
    create, _, run, activate, *_ = commands("Share")
    made = vouched.run(f"umask 077; {create}")
    assert "other users use it" not in made
    prefix = vouched.folder / "shared" / "envs" / "cpu"
    assert os.path.realpath(prefix / "bin" / "python").startswith("/usr/")
    before = shown(vouched.folder / "shared")
    for printed in by_users(vouched, [run, activate], 16):
        assert re.search(r"^cmake version [\d.]+\n(.*\n)*status 0$", printed, re.MULTILINE), printed
    assert shown(vouched.folder / "shared") == before
    prefix.chmod(0o777)  # now anybody could put programs there
    for printed in by_users(vouched, [run, activate], 2):
        assert f"`chmod go-w {prefix}`, by its owner, closes it" in printed
        assert "cmake version" not in printed
    prefix.chmod(0o755)
    SETTINGS.chmod(0o666)
    for printed in by_users(vouched, [run, activate], 2):
        assert f"error[usage]: {SETTINGS} is not used: {SETTINGS} is not root's alone" in printed
        assert "cmake version" not in printed
    SETTINGS.chmod(0o644)


def test_an_image_is_used_where_it_was_made_for_alone(vouched: Site) -> None:
    _, _, _, _, create, export, mount, run, fuse, *_ = commands("Share")
    vouched.run(create)
    said = vouched.run(export)
    assert "its Python is /usr/bin/python3" in said
    folder, other = vouched.folder / "shared" / "mnt" / "cpu", vouched.folder / "shared" / "envs" / "elsewhere"
    shutil.rmtree(folder)
    folder.mkdir()
    other.mkdir(parents=True)
    loops = subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode == 0
    vouched.run(mount if loops else f"{fuse} -o allow_other")
    try:
        before = shown(folder)
        activate = run.replace("tenv run", 'eval "$(tenv activate').replace(" -- ", ')" && ')
        for printed in by_users(vouched, [run, activate], 16):
            assert re.search(r"^cmake version [\d.]+\n(.*\n)*status 0$", printed, re.MULTILINE), printed
        assert shown(folder) == before
    finally:
        vouched.run(f"umount {folder}")
    line = (mount if loops else f"{fuse} -o allow_other").replace("/shared/mnt/cpu", str(other))
    vouched.run(line)
    try:
        (printed,) = by_users(vouched, [run.replace("/shared/mnt/cpu", str(other))], 1)
        assert f"{other} was moved: it was made as {folder}" in printed
        assert printed.endswith("status 8")
    finally:
        vouched.run(f"umount {other}")


def test_a_module_is_loaded_and_unloaded(site: Site) -> None:
    create, *_, export, load = commands("Share")
    site.run(create)
    site.run(export)
    own = r"^(LOADEDMODULES|_LMFILES_|MODULEPATH|__MODULES_\w+|_ModuleTable\w*|__LMOD\w*|LMOD_\w+|_)="
    line = load.replace("cmake --version", 'cmake --version && command -v cmake && echo "$CXXFLAGS"')
    for start in module_systems():
        printed = site.run(
            "export CXXFLAGS='-include a.h -include b.h'\n"
            f"export MAX_JOBS=7 LD_LIBRARY_PATH=/a PYTHONHOME=/b PATH={site.folder}/bin:/usr/bin:/bin\n{start}\n"
            f"env | sort > before\n{line}\nenv | sort > after\n"
            f"diff <(grep -vE '{own}' before) <(grep -vE '{own}' after)"
        )
        assert f"{site.folder}/shared/envs/cpu/bin/cmake" in printed, start
        assert "-include a.h -include b.h -include c.h -include d.h\n" in printed, start


def module_systems() -> list[str]:
    """Return the lines that begin Environment Modules, and Lmod where LMOD_INIT names its file."""
    own = Path("/usr/share/modules/init/bash")
    assert own.is_file(), "apt install environment-modules"
    return [f". {file}" for file in (own, os.environ.get("LMOD_INIT")) if file]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


_CONF = """\
ClusterName=tenv
SlurmctldHost=@HOST@(127.0.0.1)
SlurmctldPort=@PORT0@
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=@DIR@/munge.sock
CredType=cred/munge
StateSaveLocation=@DIR@/state
SlurmdSpoolDir=@DIR@/spool-%n
SlurmctldPidFile=@DIR@/ctld.pid
SlurmdPidFile=@DIR@/%n.pid
SlurmctldLogFile=@DIR@/ctld.log
SlurmdLogFile=@DIR@/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
Prolog=@DIR@/prolog.sh
NodeName=n1 NodeHostname=@HOST@ NodeAddr=127.0.0.1 Port=@PORT1@ CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=@HOST@ NodeAddr=127.0.0.1 Port=@PORT2@ CPUs=1 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a controller and two slurmd, beside the system's own services."""
    assert os.geteuid() == 0, "slurmd runs as root"
    assert not [name for name in SLURM if shutil.which(name) is None], "apt install slurm-wlm munge pdsh"
    home = tmp_path_factory.mktemp("slurm")
    (home / "state").mkdir()
    (home / "munge.key").write_bytes(os.urandom(64))
    (home / "munge.key").chmod(0o600)
    (home / "prolog.sh").write_text("#!/bin/sh\nexit 0\n")
    (home / "prolog.sh").chmod(0o755)
    text = _CONF.replace("@DIR@", str(home)).replace("@HOST@", socket.gethostname())
    for number in range(3):
        text = text.replace(f"@PORT{number}@", str(free_port()))
    (home / "slurm.conf").write_text(text)
    names = {"key-file": "munge.key", "socket": "munge.sock", "log-file": "munge.log"}
    names |= {"pid-file": "munge.pid", "seed-file": "munge.seed"}
    munge = ["munged", "--foreground", "--force", *(f"--{name}={home / file}" for name, file in names.items())]
    daemons = [munge, ["slurmctld", "-c", "-D", "-f", str(home / "slurm.conf")]]
    daemons += [["slurmd", "-D", "-f", str(home / "slurm.conf"), "-N", name] for name in ("n1", "n2")]
    environ = {**site.environ, "SLURM_CONF": str(home / "slurm.conf")}
    running = list[subprocess.Popen[bytes]]()
    try:
        for words in daemons:
            running.append(
                subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home)
            )
            time.sleep(0.5)
        made = Site(site.folder, environ)
        end = time.monotonic() + 60
        while made.run("sinfo -h -o %T", None).split() != ["idle"]:
            assert time.monotonic() < end, (home / "ctld.log").read_text()
            time.sleep(0.5)
        yield made
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(30)


def test_hosts_are_gathered_and_judged_by_each_line_of_the_page(slurm: Site) -> None:
    gathered, judged, labelled, pdsh = commands("Gather")
    slurm.run(gathered)
    shown = slurm.run(judged)
    assert "build+run" in shown
    assert re.search(r"n[12], n[12]\n", shown)
    assert re.search(r"n[12], n[12]\n", slurm.run(labelled))  # srun -l cuts the lines
    assert "equal report more of" in slurm.run(pdsh)  # two programs on this one machine, outside a job
    failed = slurm.run(
        f"(echo 'n3: bash: tenv: command not found'; cat fleet.jsonl) | {judged.replace('fleet.jsonl', '-')}", 1
    )
    assert "standard input:1: no report: `n3: bash: tenv: command not found`" in failed


def test_a_job_is_placed_by_a_feature_and_runs_in_an_environment(slurm: Site) -> None:
    features, scontrol, create, job, _ = commands("Slurm")
    slurm.run(commands("Gather")[0])
    assert re.search(r"^NodeName=n[12],n[12] Feature=\S*\btenv-cpu\b", slurm.run(features), re.MULTILINE)
    slurm.run(scontrol)
    slurm.run(create)
    for _ in range(2):
        assert "cmake version" in slurm.run(job)
        assert slurm.run("srun -Q --constraint=tenv-cpu printenv SLURMD_NODENAME") == "n1\n"
    ran = slurm.run(job.replace("cmake --version", "sh -c 'command -v cmake'").replace("srun ", "srun -Q "))
    assert ran == f"{slurm.folder}/shared/envs/cpu/bin/cmake\n"


def test_a_prolog_drains_a_node_on_which_the_target_does_not_run(slurm: Site) -> None:
    *_, export = commands("Slurm")
    slurm.run(export)
    prolog = Path(slurm.environ["SLURM_CONF"]).with_name("prolog.sh")
    of_cpu = (slurm.folder / "prolog" / "tenv-cpu-prolog.sh").read_text()
    prolog.write_text(of_cpu.replace("#!/bin/sh\n", f"#!/bin/sh\nTENV={slurm.folder}/bin/tenv\n", 1))
    slurm.run("scontrol update NodeName=n1,n2 AvailableFeatures=tenv-cpu,tenv-cuda130,tenv-cpu-2.7")
    assert slurm.run("srun -Q --constraint=tenv-cpu printenv SLURMD_NODENAME").startswith("n")
    slurm.run("tenv export slurm cuda130 --output prolog")  # for which this machine has no driver
    of_cuda = (slurm.folder / "prolog" / "tenv-cuda130-prolog.sh").read_text()
    prolog.write_text(of_cuda.replace("#!/bin/sh\n", f"#!/bin/sh\nTENV={slurm.folder}/bin/tenv\n", 1))
    assert slurm.run("srun -Q --constraint=tenv-cpu printenv SLURMD_NODENAME").startswith("n")  # it is not asked
    slurm.run("srun --immediate=20 --constraint=tenv-cuda130 -w n2 true", None)
    reason = slurm.run("sinfo -R -h -o '%E %N'")
    assert "tenv: cuda130 does not run: warning[TE101]" in reason
    assert slurm.run("srun -Q --constraint=tenv-cpu printenv SLURMD_NODENAME") == "n1\n"
