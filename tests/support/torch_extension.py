"""A source archive of an index whose build needs the torch of its target, which is a small made one."""

import shutil
import subprocess
from pathlib import Path

import yaml

from tenv.sources.wheels.sdist_builds import built_folder
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project
from tests.support.source_trees import pack_sdist, write_tree

__all__ = ["REQUEST", "Extension", "House", "request_it", "value"]

REQUEST = 'vision = { version = "*", build = true, isolation = false, requires = ["alpha>=1"] }'


class Extension:
    """The source archive of `vision`, whose module gets the version of the torch that is there when it is built.

    Attributes:
        tree: Its files.
        seen: The file to which each build adds that version.
    """

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.tree, self.seen = project, write_tree(folder / "vision"), folder / "seen"
        for name, version in (("setuptools", "80.0"), ("ninja", "1.13"), ("torch", "2.1"), ("torch", "2.2")):
            make_wheel(project.index.folder, name, version)
        backend = self.tree / "backend" / "own_backend.py"
        noted = f"        open({str(self.seen)!r}, 'a').write(torch.VERSION + '\\n')\n"
        text = backend.read_text().replace("import base64", "import base64\nimport torch")
        text = text.replace('"vision.py": file.read()', '"vision.py": f"VALUE = {torch.VERSION!r}\\n"')
        backend.write_text(
            text.replace('open(os.path.join("src", "vision.py")) as file:\n', f'open("PKG-INFO") as file:\n{noted}')
        )
        project_file = self.tree / "pyproject.toml"
        wanted = '"alpha>=1", "beta; extra == \'dev\'"'  # an extra that the manifest does not name
        text = project_file.read_text().replace('"alpha>=1"', wanted)
        # so its requirements are not static, as with a `setup.py`
        project_file.write_text(text.replace("dependencies =", 'dynamic = ["requires-python"]\ndependencies ='))
        self.pack()

    def pack(self) -> None:
        """Pack the archive, whose metadata is not static."""
        pack_sdist(self.tree, self.project.index.folder, static=False)

    @property
    def builds(self) -> list[str]:
        """The torch of each build."""
        return self.seen.read_text().split() if self.seen.is_file() else []

    def run_first(self, file: Path) -> None:
        """Have each build run a file first, where there is one, and pack the archive."""
        backend = self.tree / "backend" / "own_backend.py"
        head = "def build_wheel(folder, settings=None, metadata=None):\n"
        line = f"    exec(open({str(file)!r}).read() if os.path.exists({str(file)!r}) else '')\n"
        backend.write_text(backend.read_text().replace(head, head + line))
        self.pack()


class House:
    """The wheelhouse of the project, and what `create` prints about it."""

    def __init__(self, project: Project) -> None:
        self.project, self.folder = project, project.folder / "wheels"
        project.edit("platforms", 'wheelhouse = "../wheels"\nplatforms')
        self.count = 0

    @property
    def pins(self) -> list[str]:
        (rows,) = yaml.safe_load(self.project.lock.read_text())["tenv"]["source-trees"].values()
        return [*rows[0].get("wheels", [])]

    @property
    def map(self) -> Path:
        return self.folder / "wheelhouse.json"

    @property
    def wheel(self) -> Path:
        return next(self.folder.glob("*/*.whl"))

    def lock(self) -> str:
        return " ".join(self.project.ok("lock", "tiny").err.split())

    def create(self) -> str:
        """Make one more environment, as another machine does that has compiled nothing."""
        shutil.rmtree(built_folder(), ignore_errors=True)
        self.count += 1
        words = ("create", "tiny", "--locked", "--prefix", str(self.project.folder / f"env{self.count}"))
        return " ".join(self.project.ok(*words).err.split())


def request_it(project: Project) -> None:
    """Have the manifest ask for the package and for a torch."""
    project.edit('native = "*"\n', "")
    project.edit('alpha  = ">=1"', f'torch = "2.1"\n{REQUEST}')
    project.edit(project.manifest.read_text().splitlines()[2], f'python = "{HERE}.*"')


def value(prefix: Path) -> str:
    """Return the torch that the package in an environment was compiled against."""
    words = [str(prefix / "bin" / "python"), "-c", "import alpha, vision; print(vision.VALUE)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
