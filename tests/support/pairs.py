"""Random pairs of a host and a target, as files: a host report, a manifest, a lock and at times a PyTorch checkout.

A pair begins with a case in which a rule about building has a finding (``tests/checks/rules/limits``). At times it gets
values of the host in another rule's case, and at times it loses one.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenv.checks.pytorch_source import SourceRequirement, SourceTree
from tenv.checks.rules.catalogue import RULES
from tenv.checks.rules.interface import Case, Rule, Scope
from tenv.core.files import digest_bytes
from tenv.host.interface import Fact, Missing
from tenv.host.report_json import to_json
from tenv.targets.manifest import DEBUG_PYTHON, Manifest
from tests.checks.rules.cases import case, limits_of
from tests.support.lock_builders import lock_bytes

__all__ = ["BUILDING", "Pair", "pairs"]

BUILDING: tuple[Rule, ...] = tuple(rule for rule in RULES if rule.scope is not Scope.RUN)
"""The rules about building."""

_OF_HOST = (
    "driver",
    "gpus",
    "compilers",
    "libc",
    "libstdcxx",
    "memory",
    "disk",
    "toolkits",
    "pythons",
    "compat",
    "module",
)
_RELEASES = ("1.12.1", "2.1.2", "2.4.1", "2.5.1", "2.7.1", "2.9.1", "2.12.0", "2.15.0")
_ARCH_LISTS = ("8.0;9.0+PTX", "7.5", "12.0")


@dataclass(frozen=True)
class Pair:
    """A host and a target.

    Attributes:
        case: What the files hold.
        number: Its place among the pairs.
    """

    case: Case
    number: int

    def write(self, folder: Path) -> str:
        """Write a project whose target is `t`, in a checkout if a revision is judged; return the host report's file."""
        asked = self.case
        for name in ("manifests", "locks"):
            (folder / name).mkdir(parents=True)
        (folder / "manifests" / "t.toml").write_text(_manifest(asked.manifest), encoding="utf-8")
        if asked.lock is not None:
            lock = replace(asked.lock, manifest=digest_bytes(b""), archives=_archives(asked))
            (folder / "locks" / "t.lock").write_bytes(lock_bytes(lock))
        if asked.source is not None:
            _write_checkout(folder, asked.source)
        file = folder / "host.json"
        file.write_text(json.dumps(to_json(asked.host)), encoding="utf-8")
        return str(file)


def pairs(count: int, seed: int = 33) -> Iterator[Pair]:
    """Yield pairs; each rule about building is the beginning of as many as any other."""
    chance = random.Random(seed)
    codes = list(dict.fromkeys(code for rule in BUILDING for code in rule.codes))
    every = [changes for code in codes for changes in (limits_of(code).speaks, *limits_of(code).also)]
    whole = [limits_of(code) for rule in RULES for code in rule.codes]
    others = [changes for limit in whole for changes in (limit.speaks, *limit.also, *limit.silent)]
    for number in range(count):
        own = every[number % len(every)]
        changes: dict[str, Any] = dict(own)
        if chance.random() < 0.5:
            more = chance.choice(others)
            changes = {**{name: more[name] for name in _OF_HOST if name in more}, **changes}
        if chance.random() < 0.2:
            changes.setdefault("torch", chance.choice(_RELEASES))
        if chance.random() < 0.1:
            changes.setdefault("arch_list", chance.choice(_ARCH_LISTS))
        if chance.random() < 0.2:
            changes[chance.choice([name for name in _OF_HOST if name not in own])] = Missing("the report does not say")
        made = case(**changes)
        host = replace(made.host, platform=Fact(made.platform, "test"))
        yield Pair(replace(made, host=host), number)


def _archives(asked: Case) -> Any:
    """Return the archives of a lock with addresses that a lock may hold."""
    assert asked.lock is not None
    return {
        platform: tuple(replace(row, url=row.url.replace("https://x/", "https://x.org/")) for row in rows)
        for platform, rows in asked.lock.archives.items()
    }


def _manifest(asked: Manifest) -> str:
    lines = [f"platforms = {json.dumps(asked.platforms)}"]
    lines += [f'{name} = "{value}"' for name in ("pytorch", "python") if (value := getattr(asked, name)) is not None]
    requirements = {name: getattr(asked.requirements, name) for name in ("cuda", "glibc")}
    if asked.requirements.cuda_from:
        requirements["cuda"] = asked.requirements.cuda_from
    wheels = {name: request.version.text for name, request in asked.wheels.items()}
    variables = {name: request.text for name, request in asked.environment.items()}
    dependencies = {name: request.version.text for name, request in asked.dependencies.items()}
    for section, rows in (
        ("requirements", requirements),
        ("dependencies", dependencies),
        ("pypi-dependencies", wheels),
        ("system", asked.system),
        ("activation.env", variables),
    ):
        lines += [f"[{section}]", *(_row(name, value) for name, value in rows.items() if value is not None)]
    return "\n".join(lines) + "\n"


def _row(name: str, value: object) -> str:
    return f'python = {{ version = "{value}", debug = true }}' if name == DEBUG_PYTHON else f'"{name}" = "{value}"'


def _write_checkout(folder: Path, source: SourceTree) -> None:
    """Write the files of a checkout from which the requirements of a revision are read."""

    def asked(name: str) -> str:
        found = getattr(source, name)
        return str(found.value) if isinstance(found, SourceRequirement) else ""

    cmake = [f"cmake_minimum_required(VERSION {asked('cmake_min') or '3.5'})", "project(Torch CXX C)"]
    cmake += [f"set(CMAKE_CXX_STANDARD {asked('cxx_standard')})"] if asked("cxx_standard") else []
    cmake += [f'message(FATAL_ERROR "GCC-{asked("gcc_min")} or newer is required")'] if asked("gcc_min") else []
    backend = asked("build_backend").replace("scikit-build-core", "scikit_build_core.build")
    project = ["[project]", f"requires-python = {json.dumps(asked('python'))}"] if asked("python") else []
    project += [
        "[build-system]",
        "requires = []",
        f'build-backend = "{backend.replace("setuptools", "setuptools.build_meta")}"',
    ]
    cuda = f"PyTorch requires CUDA {asked('cuda_min')} and above" if asked("cuda_min") else ""
    files = {
        "version.txt": source.version.value,
        "CMakeLists.txt": "\n".join(cmake),
        "pyproject.toml": "\n".join(project),
        "cmake/public/cuda.cmake": cuda,
    }
    if state := source.state:
        files[".gitmodules"] = "".join(f'[submodule "x"]\n\tpath = {path}\n' for path in state.broken)
        if done := state.hipified:
            note = {"commit": done.commit, "changed": dict(done.changed), "new": done.new, "whole": done.whole}
            files[done.evidence] = json.dumps(note)
        if state.eigen_missing:
            files["third_party/eigen_pin.txt"] = "3.4.0\n"
        if cache := state.cache:
            entries = "".join(f"{name}:{entry.kind}={entry.value}\n" for name, entry in cache.entries.items())
            home = cache.moved or folder
            files["build/CMakeCache.txt"] = f"{entries}CMAKE_HOME_DIRECTORY:INTERNAL={home}\n"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
