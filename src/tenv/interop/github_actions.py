"""A workflow of GitHub Actions: a job that makes an environment from its lock, or takes it from the cache.

A target of the project that the workflow lies in is made from its own manifest and lock, any other from copies.
"""

from tenv import __version__
from tenv.core.errors import FormatError
from tenv.core.versions import Version
from tenv.interop.container_recipe import constraints, own_wheel
from tenv.interop.interface import Exported, Format, Subject

_FOLDER = ".github/tenv"
_OLDEST, _USUAL = Version("3.11"), "3.12"
_ACTIONS = {
    "checkout": "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
    "setup-python": "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0",
    "cache": "actions/cache@5a3ec84eff668545956fd18022155c47e93e2684 # v4.2.3",
}
"""The actions, each by the commit of its release."""


def _python(subject: Subject) -> str:
    """Return the Python of the job: tenv runs on it, and a target that brings none is made with it.

    Raises:
        FormatError: No Python serves both.
    """
    minors = subject.lock.python_minors("linux-64")
    if subject.lock.conda_python("linux-64") or not minors:
        return _USUAL
    fits = [minor for minor in minors if Version(minor) >= _OLDEST]
    if not fits:
        raise FormatError(f"the wheels are for Python {', '.join(minors)}, and tenv runs on {_OLDEST} and newer")
    return fits[-1]


def _export(subject: Subject) -> Exported:
    name = subject.manifest.name
    if "linux-64" not in subject.platforms:
        raise FormatError(f"the job runs on linux-64, and {name} is for {', '.join(subject.platforms)}")
    wheel, raw = own_wheel()
    home = subject.home or _FOLDER
    prefix = f"{home}/.tenv/envs/{name}".removeprefix("./")
    lock = f"{home}/locks/{name}.lock".removeprefix("./")
    key = f"tenv-{__version__}-{name}-${{{{ runner.os }}}}-${{{{ runner.arch }}}}"
    text = f"""\
# Made by `tenv export github-actions {name}` of tenv {__version__}.
name: tenv {name}
on: [push, pull_request]
permissions:
  contents: read
jobs:
  {name.replace(".", "-")}:
    runs-on: ubuntu-24.04
    steps:
      - uses: {_ACTIONS["checkout"]}
        with:
          persist-credentials: false
          submodules: recursive
      - uses: {_ACTIONS["setup-python"]}
        with:
          python-version: "{_python(subject)}"
      - name: Install tenv
        run: python -m pip install --constraint {_FOLDER}/constraints.txt {_FOLDER}/{wheel}
      - uses: {_ACTIONS["cache"]}
        with:
          path: {prefix}
          key: {key}-${{{{ hashFiles('{lock}') }}}}
      - name: Create the environment
        working-directory: {home}
        run: tenv create {name} --frozen
      - name: Work in the environment
        run: tenv run --prefix {prefix} {name} -- python -c 'import sys; print(sys.version)'
"""
    files = {f".github/workflows/tenv-{name}.yml": text.encode(), f"{_FOLDER}/{wheel}": raw}
    files |= {f"{_FOLDER}/constraints.txt": constraints()}
    if not subject.home:
        files |= {f"{_FOLDER}/{file}": data for file, data in subject.carried.items()}
    notes = (
        "run: commit the files and push; the last step is the place for your build",
        "the runner has no GPU: what it builds is run elsewhere",
    )
    return Exported(files, notes=notes)


FORMAT = Format(
    name="github-actions",
    export=_export,
    holds_lock=False,
    carries=True,
)
