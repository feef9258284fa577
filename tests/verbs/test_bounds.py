"""Constraints and overrides: versions of packages that a manifest does not request itself."""

from pathlib import Path

import pytest
import tomli

from tenv.core.errors import ManifestError
from tenv.locks.lock_file import read_lock
from tenv.locks.wheel_requirement import overridden
from tenv.targets.manifest_file import read_manifest
from tests.support.each import each
from tests.support.fakes import Index, make_wheel
from tests.support.projects import HERE, call

HEAD = f'platforms = ["linux-64"]\npython = "{HERE}.*"\n'
ASKED = '[pypi-dependencies]\nalpha = "*"\n'


def versions() -> dict[str, str]:
    return {row.name: row.version for row in read_lock(Path("locks/mine.lock"), "mine").wheels["linux-64"]}


def test_a_lock_has_the_versions_that_constraints_and_overrides_leave(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = empty_project / "wheels"
    make_wheel(folder, "alpha", "1.0", requires=("beta<2", "gamma", "delta; sys_platform == 'win32'"))
    for name in ("beta", "gamma"):
        for version in ("1.0", "2.0", "3.0"):
            make_wheel(folder, name, version)
    manifest = empty_project / "manifests" / "mine.toml"
    with Index(folder) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        for bounds, beta, gamma in (
            ("", "1.0", "3.0"),
            ('constraints = ["gamma<3"]\n', "1.0", "2.0"),
            ('overrides = ["beta>=2,<3", "gamma==1.0"]\n', "2.0", "1.0"),
            ('constraints = ["gamma<3; sys_platform == \'win32\'"]\noverrides = ["beta\\t>2"]\n', "3.0", "3.0"),
        ):
            manifest.write_text(f"{HEAD}{bounds}{ASKED}")
            ended = call("update", "mine") if Path("locks/mine.lock").exists() else call("lock", "mine")
            assert ended.status == 0, ended.err
            assert versions() == {"alpha": "1.0", "beta": beta, "gamma": gamma}, bounds
            assert call("lock", "mine", "--check").status == 0
        for bounds, fault in (
            (
                'overrides = ["beta>2"]\nconstraints = ["gamma<3"]\n',
                "gamma 3.0 is locked, the manifest has the constraint",
            ),
            ("", "beta 3.0 is locked, alpha 1.0 requires <2"),
        ):
            manifest.write_text(f"{HEAD}{bounds}{ASKED}")
            ended = call("lock", "mine", "--check")
            assert (ended.status, fault in ended.err) == (7, True), ended.err


def test_the_extras_of_an_override_replace_those_of_a_requirement(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = empty_project / "wheels"
    make_wheel(folder, "alpha", "1.0", requires=("beta[old]",))
    make_wheel(folder, "beta", "1.0", requires=("gamma; extra == 'old'", "delta; extra == 'new'"))
    for name in ("gamma", "delta"):
        make_wheel(folder, name, "1.0")
    manifest = empty_project / "manifests" / "mine.toml"
    with Index(folder) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        for override, more in (("beta>=1", {}), ("beta[new]", {"delta": "1.0"}), ("beta[old,new]>=1", None)):
            manifest.write_text(f'{HEAD}overrides = ["{override}"]\n{ASKED}')
            Path("locks/mine.lock").unlink(missing_ok=True)
            assert call("lock", "mine").status == 0
            both = {"delta": "1.0", "gamma": "1.0"}
            assert versions() == {"alpha": "1.0", "beta": "1.0", **(both if more is None else more)}
            checked = call("lock", "mine", "--check")
            assert checked.status == 0, checked.err


@each(
    "line, fault",
    [
        ('constraints = ["alpha<2"]', "`alpha` is requested by [pypi-dependencies], whose versions count"),
        ('overrides = ["beta"]', "`beta` is no name with versions"),
        ("constraints = [\"beta; sys_platform == 'linux'\"]", "is no name with versions"),
        ('overrides = ["beta @ https://files.example/beta.whl"]', "is no name with versions"),
        ('constraints = ["beta[x]<2"]', "is no name with versions"),
        ('overrides = ["beta[x] @ https://files.example/beta.whl"]', "is no name with versions"),
        ('constraints = ["beta <<2"]', "`beta <<2`: "),
        ("constraints = 1", "constraints"),
    ],
)
def test_a_bound_that_is_none_is_refused(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{HEAD}{line}\n{ASKED}")
    with pytest.raises(ManifestError) as error:
        read_manifest("mine", path, lambda _: path)
    assert fault in error.value.message


@each(
    "text, expected",
    [
        ("beta<2", ("beta>=3",)),
        ("Beta[x]<2; extra == 'more'", ('beta>=3 ; (extra == "more")',)),
        ("rich[x]", ("rich[b,y]",)),
        ("other<2", ("other<2",)),
        ("two", ('two==1 ; (sys_platform == "linux")', 'two==2 ; (sys_platform == "win32")')),
        ("no requirement", ("no requirement",)),
    ],
)
def test_an_override_has_the_extras_itself_and_keeps_the_marker_of_a_requirement(
    text: str, expected: tuple[str, ...]
) -> None:
    lines = ["beta>=3", "two==1; sys_platform == 'linux'", "two==2; sys_platform == 'win32'", "rich[y,b]"]
    assert overridden((text,), lines) == expected
    assert overridden(None, lines) is None


@pytest.mark.usefixtures("empty_project")
def test_imports_keep_the_bounds_of_packages_that_are_not_requested() -> None:
    pixi = (
        '[workspace]\nname = "it"\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n[dependencies]\npython = "*"\n'
    )
    for name, text, expected in (
        ("requirements.txt", "alpha\n-c bounds.txt\n", {"constraints": ["beta<2"]}),
        (
            "pyproject.toml",
            '[project]\nname = "it"\ndependencies = ["alpha"]\n[tool.uv]\n'
            'override-dependencies = ["beta[x]<2", "alpha>3"]\n'
            'constraint-dependencies = ["gamma<3"]\nexclude-dependencies = ["delta"]\n',
            {"constraints": ["gamma<3"], "overrides": ["beta[x]<2", "delta ; sys_platform == 'never'"]},
        ),
        (
            "environment.yml",
            "dependencies:\n- python=3.12\n- pip:\n  - alpha\n  - -c bounds.txt\n",
            {"constraints": ["beta<2"]},
        ),
        (
            "pixi.toml",
            f'{pixi}[pypi-dependencies]\nalpha = "*"\n'
            '[pypi-options.dependency-overrides]\nbeta = { version = "1.0", extras = ["x"] }\nalpha = ">=4"\n',
            {"overrides": ["beta[x]==1.0"]},
        ),
        (
            "uv.lock",
            'version = 1\nrequires-python = ">=3.12,<3.13"\n'
            '[manifest]\noverrides = [{ name = "beta", extras = ["x"], specifier = "<2" }]\n'
            '[[package]]\nname = "it"\nversion = "1"\nsource = { virtual = "." }\ndependencies = [{ name = "alpha" }]\n'
            '[package.metadata]\nrequires-dist = [{ name = "alpha" }]\n'
            '[[package]]\nname = "alpha"\nversion = "1.0"\nsource = { registry = "https://index.example/simple" }\n'
            f'wheels = [{{ url = "https://files.example/alpha-1.0-py3-none-any.whl", hash = "sha256:{"a" * 64}" }}]\n',
            {"overrides": ["beta[x]<2"]},
        ),
    ):
        for other in ("pyproject.toml", "pixi.toml"):
            Path(other).unlink(missing_ok=True)
        Path("bounds.txt").write_text("beta<2\nalpha<9\n")
        Path(name).write_text(text)
        ended = call("import", name, "--name", "made", "--force", "--offline", "--json")
        assert ended.status == 0, (name, ended.err)
        made = tomli.loads(Path("manifests/made.toml").read_text())
        assert {key: made[key] for key in ("constraints", "overrides") if key in made} == expected, name
        assert not ended.data["lost"], (name, ended.data["lost"])


@pytest.mark.usefixtures("empty_project")
def test_the_override_of_a_request_has_its_extras_as_for_uv() -> None:
    for line, expected in (("alpha>=2", ">=2"), ("alpha[new]>=2", {"version": ">=2", "extras": ["new"]})):
        Path("pyproject.toml").write_text(
            f'[project]\nname = "it"\ndependencies = ["alpha[old]<2"]\n[tool.uv]\noverride-dependencies = ["{line}"]\n'
        )
        assert call("import", "pyproject.toml", "--name", "made", "--force", "--offline").status == 0
        assert tomli.loads(Path("manifests/made.toml").read_text())["pypi-dependencies"] == {"alpha": expected}
