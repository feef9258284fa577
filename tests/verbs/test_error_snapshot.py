"""How a command ends with each class of error: what is said, and the error of the envelope.

A new class of `tenv.core.errors` asks for a row of `CASES` here. ``pytest -m snapshots --snapshot-update`` writes the
snapshots anew.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tenv.core import errors
from tenv.core.errors import TenvError
from tenv.host.machine import current_platform
from tests.support.archive_server import ask
from tests.support.authority import Authority
from tests.support.check_hosts import report, write
from tests.support.fakes import Fault, Index, make_wheel
from tests.support.marked import mark
from tests.support.projects import Project, call, held
from tests.support.steady import Printed, whole

if TYPE_CHECKING:
    from tests.support.conda_project import Conda
    from tests.support.redist import Server

pytestmark = pytest.mark.snapshots

Words = tuple[str, ...]
Case = Callable[[pytest.FixtureRequest], Iterator[Words]]
"""Makes the situation of an error and yields the command that ends with it."""


def project_of(request: pytest.FixtureRequest, name: str = "project") -> Project:
    made: Project = request.getfixturevalue(name)
    return made


def patch_of(request: pytest.FixtureRequest) -> pytest.MonkeyPatch:
    made: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    return made


def bundle_refused(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request, "locked")
    project.ok("bundle", "tiny")
    with Path("tiny.tenv").open("r+b") as file:
        file.truncate(Path("tiny.tenv").stat().st_size - 1)
    yield ("create", "tiny", "--bundle", "tiny.tenv")


def bug(request: pytest.FixtureRequest) -> Iterator[Words]:
    raising(request, RuntimeError("a table has no row"))
    yield ("targets",)


def cancelled(request: pytest.FixtureRequest) -> Iterator[Words]:
    raising(request, KeyboardInterrupt())
    yield ("targets",)


def raising(request: pytest.FixtureRequest, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    patch_of(request).setattr("tenv.project.context.Context.__init__", fail)


def usage(request: pytest.FixtureRequest) -> Iterator[Words]:
    yield ("create", "--nonsense")


def unknown_target(request: pytest.FixtureRequest) -> Iterator[Words]:
    yield ("show", "tinny")


def host_report(request: pytest.FixtureRequest) -> Iterator[Words]:
    yield ("check", "cpu", "--host-report", write(project_of(request).folder / "report.json", "{"))


def file_format(request: pytest.FixtureRequest) -> Iterator[Words]:
    write(project_of(request).folder / "holiday.jpg", "JFIF")
    yield ("import", "holiday.jpg")


def file_exists(request: pytest.FixtureRequest) -> Iterator[Words]:
    write(project_of(request).folder / "environment.yml", "name: tiny\ndependencies: [python=3.11]\n")
    yield ("import", "environment.yml")


def facts(request: pytest.FixtureRequest) -> Iterator[Words]:
    patch_of(request).setenv("TENV_FACTS", "nowhere.toml")
    yield ("facts",)


def manifest(request: pytest.FixtureRequest) -> Iterator[Words]:
    project_of(request).edit("[pypi-dependencies]", "[pypi-dependancies]")
    yield ("show", "tiny")


def host(request: pytest.FixtureRequest) -> Iterator[Words]:
    project_of(request).edit(f'["{current_platform()}"]', '["win-64"]')
    yield ("create", "tiny")


def unfit_host(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request, "locked")
    project.edit('glibc = "2.17"', 'glibc = "2.17"\ncuda = "13.0"')
    machine = report("580.65.06", "NVIDIA H100", "9.0", compilers=[])
    yield ("create", "tiny", "--host-report", write(project.folder / "report.json", machine))


def lock_unbuildable(request: pytest.FixtureRequest) -> Iterator[Words]:
    conda: Conda = request.getfixturevalue("conda")
    conda.make("cuda-nvcc_linux-64", "13.0.48")
    conda.lock("cuda-nvcc_linux-64")
    machine = report("580.65.06", "NVIDIA H100", "9.0")
    yield ("create", "tiny", "--host-report", write(conda.project.folder / "report.json", machine))


def no_target(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request, "locked")
    patch_of(request).setattr("tenv.targets.search._built_in", lambda: project.folder / "none")
    project.edit('glibc = "2.17"', 'glibc = "2.17"\ncuda = "13.0"')
    machine = report("418.39", "NVIDIA GeForce GTX 1660 Ti", "7.5")
    yield ("create", "auto", "--host-report", write(project.folder / "report.json", machine))


def torch(request: pytest.FixtureRequest) -> Iterator[Words]:
    project_of(request)
    yield ("create", "auto", "--for", "nowhere")


def no_solution(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request)
    project.edit('">=1"', '">=99"')
    yield ("lock", "tiny")


def network(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request)
    request.getfixturevalue("impatient")
    with project.index.failing(Fault.ERROR, "/simple/"):
        yield ("lock", "tiny")


def certificate(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request)
    made = Index(project.index.folder)
    made.encrypt(Authority(project.folder / "authority").context())
    with made:
        patch_of(request).setenv("UV_DEFAULT_INDEX", made.url)
        patch_of(request).setenv("UV_HTTP_RETRIES", "0")
        yield ("lock", "tiny")


def hash_mismatch(request: pytest.FixtureRequest) -> Iterator[Words]:
    with project_of(request, "locked").index.failing(Fault.CHANGED, r"/beta-[^/]*\.whl$"):
        yield ("create", "tiny")


def archive_refused(request: pytest.FixtureRequest) -> Iterator[Words]:
    served: Server = request.getfixturevalue("served")
    served.files["/broken-1.0.tar.bz2"] = b"BZh9 and no more"
    project = project_of(request)
    ask(project, f'broken = {{ url = "{served.url}/broken-1.0.tar.bz2" }}')
    project.ok("lock", "tiny", "--trust-first-use")
    yield ("create", "tiny")


def unsafe_package(request: pytest.FixtureRequest) -> Iterator[Words]:
    conda: Conda = request.getfixturevalue("conda")
    conda.make("evil", files={"tenv-meta/state.json": "{}"})
    conda.lock("evil")
    yield ("create", "tiny", "--frozen")


def lock_missing(request: pytest.FixtureRequest) -> Iterator[Words]:
    yield ("lock", "tiny", "--check")


def lock_stale(request: pytest.FixtureRequest) -> Iterator[Words]:
    project_of(request, "wide").ask_for('gamma = "*"')
    yield ("lock", "tiny", "--check")


def lock_corrupt(request: pytest.FixtureRequest) -> Iterator[Words]:
    project_of(request, "locked").lock.write_text("- no lock\n")
    yield ("create", "tiny")


def lock_conflict(request: pytest.FixtureRequest) -> Iterator[Words]:
    lock = project_of(request, "locked").lock
    lock.write_text(f"<<<<<<< ours\nversion: 7\n=======\nversion: 6\n>>>>>>> theirs\n{lock.read_text()}")
    yield ("create", "tiny")


def environment_missing(request: pytest.FixtureRequest) -> Iterator[Words]:
    yield ("activate", "tiny")


def unfinished(project: Project) -> None:
    """Make an environment of this user whose state can't be read."""
    write(project.state_file, '{"state": "creating"}')
    mark(project.prefix, Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "envs")


def environment_broken(request: pytest.FixtureRequest) -> Iterator[Words]:
    unfinished(project_of(request))
    yield ("activate", "tiny")


def environment_stale(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request, "created")
    make_wheel(project.index.folder, "alpha", "3.0")
    project.ok("update", "tiny")
    yield ("activate", "--locked", "tiny")


def environment_busy(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request)
    unfinished(project)
    with held(project.prefix):
        yield ("remove", "tiny", "--no-wait")


def foreign_folder(request: pytest.FixtureRequest) -> Iterator[Words]:
    write(project_of(request).prefix / "thesis.tex", "by hand")
    yield ("create", "tiny")


def storage(request: pytest.FixtureRequest) -> Iterator[Words]:
    project = project_of(request, "locked")
    write(project.folder / "file", "")
    yield ("bundle", "tiny", "-o", "file/tiny.tenv", "--quiet")


def program(request: pytest.FixtureRequest) -> Iterator[Words]:
    file = project_of(request, "created").folder / "script"
    write(file, "#!/nonexistent/python -u\n")
    file.chmod(0o755)
    yield ("run", "tiny", "./script")


CASES: dict[type[TenvError], Case] = {
    errors.ArchiveRefusedError: archive_refused,
    errors.BugError: bug,
    errors.BundleRefusedError: bundle_refused,
    errors.CancelledError: cancelled,
    errors.CertificateError: certificate,
    errors.EnvironmentBrokenError: environment_broken,
    errors.EnvironmentBusyError: environment_busy,
    errors.EnvironmentMissingError: environment_missing,
    errors.EnvironmentStaleError: environment_stale,
    errors.FactsError: facts,
    errors.FileExistsAlreadyError: file_exists,
    errors.ForeignFolderError: foreign_folder,
    errors.FormatError: file_format,
    errors.HashMismatchError: hash_mismatch,
    errors.HostError: host,
    errors.HostReportError: host_report,
    errors.LockConflictError: lock_conflict,
    errors.LockCorruptError: lock_corrupt,
    errors.LockMissingError: lock_missing,
    errors.LockStaleError: lock_stale,
    errors.ManifestError: manifest,
    errors.NetworkError: network,
    errors.NoSolutionError: no_solution,
    errors.NoTargetError: no_target,
    errors.ProgramError: program,
    errors.StorageError: storage,
    errors.TorchError: torch,
    errors.UnbuildableLockError: lock_unbuildable,
    errors.UnfitHostError: unfit_host,
    errors.UnknownTargetError: unknown_target,
    errors.UnsafePackageError: unsafe_package,
    errors.UsageError: usage,
}


def test_every_error_has_a_situation_and_a_code_of_its_own() -> None:
    known = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TenvError)}
    assert known - {TenvError} == set(CASES), "a row of `CASES` here is missing"
    assert len({kind.code for kind in known}) == len(known)


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.code)
def test_how_a_command_ends(
    kind: type[TenvError], request: pytest.FixtureRequest, project: Project, snapshot: SnapshotAssertion
) -> None:
    patch_of(request).setenv("COLUMNS", "500")  # uv wraps what it says
    ended: list[Any] = []
    for words in CASES[kind](request):
        ended = [call(*words), call(words[0], "--json", *words[1:])]
    plain, enveloped = ended
    assert plain.err.count(f"error[{kind.code}]") == 1
    assert (plain.status, enveloped.status) == (kind.status, kind.status)
    error = json.loads(enveloped.out)["error"]
    assert error["code"] == kind.code
    assert whole(plain, project) == snapshot(extension_class=Printed)
    assert error["message"].splitlines()[0] in plain.err
