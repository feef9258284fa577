"""Build the exported Dockerfile with buildah and run the exported `%post` in a fresh root, and compile in both.

    python scripts/container_roots.py ROOT TARGET

ROOT is a folder that debootstrap made (as root): the base image of both. It has what this machine's Docker images would
have to reach packages: /etc/apt, certificates in /usr/local/share/ca-certificates and /etc/pip.conf. ROOT itself is
not changed. Each step comes from what `tenv export` wrote or printed: the line `build:`, the ENTRYPOINT of the image,
the sections of the definition. Buildah works without a daemon and without namespaces (`--isolation chroot`).
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
BASE = "localhost/fresh-root"
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}

CPU = """\
#include <mkl.h>
int main() { return mkl_get_max_threads() > 0 ? 0 : 1; }
"""
TRIALS: Mapping[str, str] = {
    ".cpp": "cat >/tmp/x.cpp && ${CXX:-g++} -c /tmp/x.cpp -o /tmp/x.o && file=/tmp/x.o",
    ".cu": "cat >/tmp/x.cu && nvcc -arch=sm_80 /tmp/x.cu -o /tmp/x && file=/tmp/x",
}
"""By the source's suffix: what compiles it, given on standard input."""


def call(words: Sequence[str], folder: Path, given: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run a program and return what it printed.

    Raises:
        SystemExit: It failed; its last lines were printed.
    """
    done = subprocess.run(
        words,
        cwd=folder,
        env=None if env is None else dict(env),
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout[-6000:])
        raise SystemExit(f"{shlex.join(words)[:300]}: status {done.returncode}")
    return done.stdout


def export(format_name: str, target: str, folder: Path, *more: str, project: Path = CHECKOUT) -> str:
    """Export a container file of a project's target and return what `tenv export` printed."""
    words = [sys.executable, "-P", "-m", "tenv", "export", format_name, target, "--output", str(folder), *more]
    return call(words, project)


def trial(target: str) -> tuple[str, str]:
    """Return a command that shows that the target is ready and compiles, and its standard input."""
    toolkit = target.startswith("cuda")
    source = (CHECKOUT / "examples" / "saxpy.cu").read_text() if toolkit else CPU
    compile_it = TRIALS[".cu" if toolkit else ".cpp"]
    ready = f"cd /opt/tenv && tenv verify {target} && id -un"
    return f"{ready} && cmake --version | head -1 && {compile_it} && ls -l $file | cut -d' ' -f1,5-", source


def show(what: str, said: str, lines: int = 30) -> None:
    """Print the last lines of what a step printed."""
    print(f"$ {what}")
    print("".join(f"{line}\n" for line in said.rstrip().splitlines()[-lines:]), end="", flush=True)


class Buildah:
    """Buildah with a storage of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = ["buildah", "--root", f"{folder}/storage", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]

    def __call__(self, *words: str, given: str = "") -> str:
        """Run one command of buildah."""
        return call([*self.words, *words], self.folder, given)

    def base(self, root: Path, name: str = BASE) -> None:
        """Make a base image from a folder."""
        made = self("from", "scratch").strip()
        self("add", "--quiet", made, str(root), "/")
        self("commit", "--quiet", "--rm", made, name)

    def build(self, printed: str, *images: str) -> str:
        """Build as the printed line says; return the image's name.

        Args:
            printed: What `tenv export` printed.
            images: What the images of the Dockerfile are here, each as `NAME=IMAGE`; the only one unless given.
        """
        line = re.search(r"^build: docker build (.*)$", printed, re.MULTILINE)
        if line is None:
            raise SystemExit("`tenv export` printed no build line")
        words = shlex.split(line[1])
        arguments = [word for image in images or (f"BASE={BASE}",) for word in ("--build-arg", image)]
        said = self("bud", "--isolation", "chroot", *arguments, *words)
        show(f"buildah bud --isolation chroot {' '.join(arguments)} {line[1]}", said, 14)
        return words[words.index("-t") + 1]

    def run(self, image: str, command: str, given: str) -> str:
        """Run a command by the image's own ENTRYPOINT, as `docker run IMAGE bash -c COMMAND` does."""
        config = json.loads(self("inspect", "--type", "image", image))["OCIv1"]["config"]
        made = self("from", image).strip()
        return self(
            "run", "--isolation", "chroot", made, "--", *config["Entrypoint"], "bash", "-c", command, given=given
        )


def sections(text: str) -> dict[str, str]:
    """Return the sections of an Apptainer definition, by name without the percent sign."""
    found = re.split(r"^%(\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


class Root:
    """A copy of the root, in which a definition is run as Apptainer runs it."""

    def __init__(self, folder: Path, definition: Path) -> None:
        self.folder, self.parts = folder, sections(definition.read_text())
        for line in self.parts["files"].strip().splitlines():
            source, place = line.split()
            self._copy(definition.parent / source, folder / place.lstrip("/"))

    @staticmethod
    def _copy(source: Path, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True)
        else:
            shutil.copy2(source, place)

    def chroot(self, script: str, *words: str, given: str = "") -> str:
        """Run a script of `/bin/sh` in the root, with `/proc` and `/dev` there for its time."""
        inside = 'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; exec chroot "$@"'
        outside = ["unshare", "--mount", "--pid", "--fork", "sh", "-euc", inside, "sh"]
        return call([*outside, str(self.folder), "/bin/sh", "-c", script, "sh", *words], Path("/"), given, CLEAN)

    def build(self, name: str) -> None:
        """Run `%post`."""
        show(f"%post of {name}", self.chroot(self.parts["post"]), 8)

    def run(self, command: str, given: str) -> str:
        """Run a command by `%environment` and `%runscript`, as `apptainer run IMAGE bash -c COMMAND` does."""
        return self.chroot(self.parts["environment"] + self.parts["runscript"], "bash", "-c", command, given=given)


def main(root: Path, target: str) -> None:
    """Build both, and run the trial in each."""
    command, source = trial(target)
    with tempfile.TemporaryDirectory(prefix="container-") as name:
        folder = Path(name)
        buildah = Buildah(folder)
        buildah.base(root)
        image = buildah.build(export("dockerfile", target, folder))
        show(f"docker run {image} bash -c ...", buildah.run(image, command, source))
        shutil.rmtree(folder / "storage")
        export("apptainer", target, folder / "definition")
        fresh = folder / "root"
        call(["cp", "-a", str(root), str(fresh)], folder)
        container = Root(fresh, folder / "definition" / f"{target}.def")
        container.build(f"{target}.def")
        show(f"apptainer run {target}.sif bash -c ...", container.run(command, source))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
