"""A lock after edits of its manifest has what locking from nothing gives, for every platform, Python and feature."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from tenv.core.wheel_platforms import marker_values
from tenv.host.machine import current_platform
from tenv.locks.lock import Wheel
from tenv.locks.lock_file import read_lock
from tenv.sources.wheels import resolve as resolver
from tenv.sources.wheels import uv
from tenv.targets.manifest import Manifest
from tests.support.fakes import MINORS, make_wheel
from tests.support.projects import Project, call

NEEDS = {
    "a": ("b",),
    "b": (),
    "c": ("b", "d"),
    "d": ("e ; sys_platform == 'win32'",),
    "e": (f"f ; python_version >= '{MINORS[1]}'",),
    "f": (),
}
"""The requirements of each wheel, the same in all of its versions, so that names follow from the requests alone."""

VERSIONS = ("2", "1")
PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
PARTS = ("target", "parent", "dbg", "test", "parent dbg")
FEW = max(2, settings().max_examples // 8)


@dataclass(frozen=True)
class Asked:
    """A manifest and its parent.

    Attributes:
        platforms: The platforms.
        minors: The Python minors.
        requests: The versions of each request, by part and name.
    """

    platforms: tuple[str, ...] = PLATFORMS[:1]
    minors: tuple[str, ...] = MINORS
    requests: tuple[tuple[str, str, str], ...] = (("target", "a", "*"),)

    def with_request(self, part: str, name: str, versions: str) -> "Asked":
        """Return it with a request, or without it where `versions` is empty."""
        rest = tuple(row for row in self.requests if row[:2] != (part, name))
        return replace(self, requests=(*rest, (part, name, versions)) if versions else rest)

    def texts(self) -> dict[str, str]:
        """Return the texts of the manifests `tiny` and `base`."""
        low = self.minors[0]
        high = f"3.{int(self.minors[-1].partition('.')[2]) + 1}"
        head = f'extends = "base"\nplatforms = {json.dumps(self.platforms)}\npython = ">={low},<{high}"\n'
        return {
            "tiny": head + self._sections({"target": "", "dbg": "feature.dbg.", "test": "feature.test."}),
            "base": self._sections({"parent": "", "parent dbg": "feature.dbg."}),
        }

    def _sections(self, parts: Mapping[str, str]) -> str:
        return "".join(
            f"[{prefix}pypi-dependencies]\n"
            + "".join(f'{name} = "{versions}"\n' for one, name, versions in self.requests if one == part)
            for part, prefix in parts.items()
        )


REQUESTS = st.tuples(st.sampled_from(PARTS), st.sampled_from(sorted(NEEDS)), st.sampled_from(("", "*", "==1", ">=2")))
EDITS = st.one_of(
    REQUESTS,
    REQUESTS,
    st.sets(st.sampled_from(PLATFORMS), min_size=1).map(lambda names: tuple(sorted(names))),
    st.sampled_from([MINORS, MINORS[:1], MINORS[1:]]).map(lambda minors: ("python", minors)),
)


def edited(asked: Asked, edit: Any) -> Asked:
    if edit[0] == "python":
        return replace(asked, minors=edit[1])
    return replace(asked, platforms=edit) if edit[0] in PLATFORMS else asked.with_request(*edit)


def resolve(
    _: object,
    manifest: Manifest,
    platform: str,
    python: str,
    kept: Sequence[Wheel],
    upgrade: object,
    *_rest: object,
    **_options: object,
) -> dict[str, tuple[Wheel, str]]:
    """Stand in for uv, which takes a hundred times as long: keep what is allowed, else take the newest."""
    assert upgrade == ()
    had = {wheel.name: wheel.version for wheel in kept if python in wheel.python}
    values, found, waiting = (
        dict(marker_values(platform, python)),
        dict[str, tuple[Wheel, str]](),
        list(manifest.wheels),
    )
    while waiting:
        if (name := waiting.pop()) in found:
            continue
        accepted = manifest.wheels[name].version if name in manifest.wheels else None
        order = [had[name], *VERSIONS] if name in had else [*VERSIONS]
        version = next(one for one in order if accepted is None or one in accepted)
        file = f"{name}-{version}-py3-none-any.whl"
        found[name] = Wheel(name, version, file, digest(name, version), 1, (python,)), f"https://files.test/{file}"
        for need in NEEDS[name]:
            needed, _, marker = need.partition(" ; ")
            if not marker or Marker(marker).evaluate({**values, "extra": ""}):
                waiting.append(needed)
    return found


def digest(name: str, version: str) -> str:
    return f"{name.encode().hex()}{version}".ljust(64, "0")


def requires(_: object, asked: Mapping[str, str], *_rest: object) -> dict[str, tuple[str, ...]]:
    return {sha: NEEDS[url.rpartition("/")[2].partition("-")[0]] for sha, url in asked.items()}


def rows(path: Any, minors: Sequence[str]) -> dict[tuple[str, str, str], tuple[str, tuple[str, ...]]]:
    """Return the version and the features of each wheel of a lock, by platform, Python and name.

    A smaller range of Pythons makes no lock stale, so that further ones are left out.
    """
    lock = read_lock(path, "tiny")
    return {
        (platform, minor, wheel.name): (wheel.version, wheel.features)
        for platform in lock.platforms
        for wheel in lock.wheels[platform]
        for minor in wheel.python
        if minor in minors
    }


@pytest.fixture
def edits(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(uv.Uv, "resolve", resolve)
    monkeypatch.setattr(resolver, "requirements_at", requires)
    return project


def write(project: Project, asked: Asked) -> None:
    for name, text in asked.texts().items():
        project.manifest.with_name(f"{name}.toml").write_text(text)


@pytest.mark.long
@settings(max_examples=FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(EDITS, min_size=1, max_size=6))
@example(steps=[("test", "c", "*"), ("dbg", "d", "*")])
@example(steps=[("dbg", "b", "*")])
@example(steps=[PLATFORMS, ("dbg", "e", "*"), PLATFORMS[:2], ("python", MINORS[:1])])
def test_a_lock_has_what_a_new_one_has_after_any_edits(edits: Project, steps: Sequence[Any]) -> None:
    edits.lock.unlink(missing_ok=True)
    asked, new = Asked(), edits.folder / "new.lock"
    for step in ((), *steps):
        after = edited(asked, step) if step else asked
        write(edits, after)
        new.unlink(missing_ok=True)
        ended = call("lock", "tiny", "--lock-file", str(new))
        if ended.status == 3:  # a feature only adds
            continue
        assert ended.status == 0, ended.err
        asked, before = after, rows(edits.lock, after.minors) if edits.lock.exists() else {}
        wanted = {key: features for key, (_, features) in rows(new, asked.minors).items()}
        is_right = {key: features for key, (_, features) in before.items()} == wanted
        checked, changed = call("lock", "tiny", "--check").status, edits.ok("lock", "tiny", "--json").data["changed"]
        now = rows(edits.lock, asked.minors)
        assert {key: features for key, (_, features) in now.items()} == wanted
        assert checked == (7 if changed else 0)
        assert changed or is_right
        pins = {name: versions for _, name, versions in asked.requests if versions != "*"}
        for key in before.keys() & now.keys():
            if before[key][0] in SpecifierSet(pins.get(key[2], "")):
                assert now[key][0] == before[key][0]


def test_a_feature_that_asks_for_the_package_of_another_one_is_locked_and_installed(project: Project) -> None:
    make_wheel(project.index.folder, "gamma", "1.0")
    project.manifest.write_text(project.manifest.read_text() + '\n[feature.test.pypi-dependencies]\ngamma = "*"\n')
    project.ok("create", "tiny", "--with", "test")
    project.manifest.write_text(project.manifest.read_text() + '\n[feature.dbg.pypi-dependencies]\ngamma = "*"\n')
    said = project.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert f"{current_platform()}: gamma is brought by features dbg, test, the lock has it for feature test" in said
    project.fails(7, "lock-stale", "create", "tiny", "--frozen", "--with", "dbg")
    project.ok("create", "tiny", "--with", "dbg")
    assert (project.site() / "gamma.py").is_file()
    assert "gamma" in project.state()["packages"]
    project.ok("lock", "tiny", "--check")


def test_a_feature_of_packages_that_the_target_has_is_no_reason_to_lock_again(project: Project) -> None:
    project.manifest.write_text(project.manifest.read_text() + '\n[feature.dbg.pypi-dependencies]\nbeta = "*"\n')
    project.ok("lock", "tiny")
    project.ok("create", "tiny", "--locked", "--with", "dbg")
    assert project.state()["features"] == ["dbg"]
