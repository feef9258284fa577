"""Files of other tools in public repositories: what an import makes of each."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from tenv.core.names import normalize
from tenv.targets.manifest import PLATFORMS
from tests.support.projects import call

__all__ = ["FILES", "NO_LOSS", "PublicFile", "judge"]

NO_LOSS = re.compile(
    r"so no lock is written|no lock is written:|linux-64 is used|`python` is set to|a target is one environment"
    r"|has no requests|skipped platforms: (osx-\w+(, )?)+$|follows from|is a request, since|the same packages as"
)
"""Notes that report a fact and no loss; tenv has no platform of Apple."""


@dataclass(frozen=True)
class PublicFile:
    """A reduced file of a public repository.

    Attributes:
        repository: Its repository.
        path: Its path there.
        environment: The environment to import; empty for the default one.
        refused: A word of the message that refuses it; empty for a file that is to be imported.
        first: Its class before any cure.
        now: Its class.
        holds: The names, versions and addresses that it asks for; `PLATFORM:NAME` for a request of one platform,
            `~NAME` for a group of requests.
        texts: Its text, and the texts of the files beside it, by name.
    """

    repository: str
    path: str
    environment: str
    refused: str
    first: str
    now: str
    holds: tuple[str, ...]
    texts: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.repository} {self.path} {self.environment}".strip()


def _read() -> Iterator[PublicFile]:
    rows = tomli.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["file"]
    for row in rows:
        given = {key: value for key, value in row.items() if key != "commit"}
        yield PublicFile(**{"environment": "", "refused": "", **given, "holds": tuple(row["holds"])})


FILES = tuple(_read())


def judge(file: PublicFile) -> tuple[str, str]:
    """Import a file into the project of the working folder.

    Returns:
        The class (whole, loses and reports, loses in silence, refused wrongly, refused rightly), and its reason.
    """
    for name, text in file.texts.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    lock = Path("locks/made.lock")
    lock.unlink(missing_ok=True)
    main = Path(file.path).name
    more = ["--environment", file.environment] if file.environment else []
    ended = call("import", main, "--name", "made", "--force", "--json", "--offline", *more)
    if ended.status:
        return ("refused rightly" if file.refused and file.refused in ended.err else "refused wrongly"), ended.err
    if file.refused:
        return "refused wrongly", "it is imported"
    text = Path("manifests/made.toml").read_text(encoding="utf-8")
    locked = lock.read_text(encoding="utf-8") if lock.exists() else ""
    if lock.exists():
        checked = call("lock", "made", "--check")
        assert checked.status == 0, checked.err
    names = set(_names(tomli.loads(text)))
    gone = [token for token in file.holds if not _held(token, names, text + locked)]
    said = json.dumps([*ended.data["lost"], *ended.data.get("notes", [])])
    untold = [] if "its lock, since" in said else [token for token in gone if not _told(token, said)]
    if untold:
        return "loses in silence", ", ".join(untold)
    losses = [line for line in ended.data["lost"] if not NO_LOSS.search(line)]
    return ("loses and reports" if gone or losses else "whole"), "\n".join(losses)


def _names(manifest: Mapping[str, Any], place: str = "") -> Iterator[str]:
    for section in ("dependencies", "pypi-dependencies"):
        yield from (f"{place}:{normalize(name)}" for name in manifest.get(section, {}))
    for platform, table in manifest.get("platform", {}).items():
        yield from _names(table, platform)
    for name, table in manifest.get("feature", {}).items():
        yield f"~{name}"
        yield from _names(table)


def _held(token: str, names: set[str], text: str) -> bool:
    platform, _, name = token.partition(":")
    if platform in PLATFORMS:
        return bool({token, f":{name}"} & names)
    return token in names or any(found.endswith(f":{token}") for found in names) or token in text


def _told(token: str, said: str) -> bool:
    name = token.removeprefix("~").rpartition(":")[2] if "://" not in token else token
    return name in said or normalize(name) in normalize(said)
