"""Locks from strangers: values that lead out of the prefix, or that stop tenv itself.

Each row says what the first release did with it. Now each ends with status 7, before anything is fetched or written.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.attacks.outside import make_victims
from tests.support.archive_server import ask
from tests.support.each import each
from tests.support.projects import Project, call
from tests.support.redist import Server

Data = dict[str, Any]


@dataclass(frozen=True)
class Attack:
    """A change of a lock that is otherwise in order.

    Attributes:
        name: What it is called.
        change: Makes it, in the lock's values.
        before: What the first release did with it.
    """

    name: str
    change: Callable[[Data], object]
    before: str


def _row(**values: Any) -> Callable[[Data], object]:
    """Return a change of the archive `magma`."""
    return lambda data: [row.update(values) for rows in data["tenv"]["archives"].values() for row in rows[-1:]]


def _ours(**values: Any) -> Callable[[Data], object]:
    return lambda data: data["tenv"].update({key.replace("_", "-"): value for key, value in values.items()})


_SHA = "ab" * 32
_HOST = "https://conda.anaconda.org/conda-forge"


def _wheel(**values: Any) -> Callable[[Data], object]:
    row = {"name": "a", "version": "1", "file": "a-1-py3-none-any.whl", "sha256": _SHA, "python": ["3.11"], **values}
    kept = {key: value for key, value in row.items() if value is not None}
    return lambda data: data["tenv"]["wheels"]["linux-64"].append(kept)


def _conda(url: str = f"{_HOST}/linux-64/a-1-0.conda", **values: Any) -> Callable[[Data], object]:
    def change(data: Data) -> None:
        environment = data["environments"]["tiny"]
        environment.setdefault("packages", {}).setdefault("linux-64", []).append({"conda": url})
        data["packages"].append({"conda": url, "sha256": _SHA, **values})

    return change


_OUT = "a file outside the prefix was written, and a later `create` removed it"
_RECORD = "the record was written outside the prefix, over `package.json`"
_TRACE = "a traceback"
_TAKEN = "it was taken, and `lock --check`, `create --locked` and `verify` said that all is well"
_ASKED = "the address was asked"

ATTACKS = (
    Attack("to climbs", _row(to="../../../deep"), _OUT),
    Attack("to climbs from a folder", _row(to="opt/../../../../deep/a"), _OUT),
    Attack("to is absolute", _row(to="/nowhere/attack"), _OUT),
    Attack("to is a home", _row(to="~/x"), _TAKEN),
    Attack("to is tenv's records", _row(to="tenv-meta/archives"), "its files passed for records"),
    Attack("to is conda's records", _row(to="conda-meta"), "its files passed for notes of packages"),
    Attack("to is a folder of that name within", _row(to="opt/.tenv.lock"), _TAKEN),
    Attack("to has a control character", _row(to="opt/\x1b[2Jx"), "the screen was cleared"),
    Attack("to is a drive", _row(to="C:/x"), "on Windows a file outside the prefix was written"),
    Attack("to has backslashes", _row(to="..\\..\\x"), "on Windows a file outside the prefix was written"),
    Attack("to is not plain", _row(to="opt/./x"), _TAKEN),
    Attack("to is a number", _row(to=5), "an error"),
    Attack("name climbs", _row(name="../../../../../package"), _RECORD),
    Attack("name is absolute", _row(name="/nowhere/attack"), _RECORD),
    Attack("name has a slash", _row(name="a/b"), "a record that no command read"),
    Attack("name has a null byte", _row(name="a\0b"), _TRACE),
    Attack("name is dots", _row(name=".."), "a record `tenv-meta/archives/...json`"),
    Attack("name is long", _row(name="a" * 300), _TRACE),
    Attack("url of a file", _row(url="file:///etc/passwd"), _ASKED),
    Attack("url of ftp", _row(url="ftp://example.org/a.tar.gz"), _ASKED),
    Attack("url with a password", _row(url="https://me:secret@example.org/a.tar.gz"), "the password was sent"),
    Attack("url that can't be parsed", _row(url="http://["), _TRACE),
    Attack("url with a port that is none", _row(url="http://example.org:99999999/a.tar.gz"), _TRACE),
    Attack("url with a line break", _row(url="https://example.org/a\r\nHost: b/x.tar.gz"), _ASKED),
    Attack("url that climbs", _row(url="https://developer.download.nvidia.com/compute/%2e%2e/x.tar.gz"), _ASKED),
    Attack("url without a host", _row(url="https:///x.tar.gz"), _TRACE),
    Attack("kind unknown", _row(kind="exe"), "an error of the unpacker, after the download"),
    Attack("strip negative", _row(strip=-1), "an error"),
    Attack("strip huge", _row(strip=10**9), _TAKEN),
    Attack("strip true", _row(strip=True), "an error"),
    Attack("strip a text", _row(strip="1"), "an error"),
    Attack("licence climbs", _row(licence="../../../../x"), _TAKEN),
    Attack("trust invented", _row(trust="certified"), _TAKEN),
    Attack("size negative", _row(size=-5), _TAKEN),
    Attack("size huge", _row(size=10**17), _TAKEN),
    Attack("size a list", _row(size=[1]), _TRACE),
    Attack("sha256 short", _row(sha256="ab"), "an error"),
    Attack("sha256 climbs", _row(sha256="../" * 21 + "a"), "an error"),
    Attack("an unknown key of an archive", _row(script="rm -rf ~"), _TAKEN),
    Attack("an archive twice", lambda d: [rows.append(rows[-1]) for rows in d["tenv"]["archives"].values()], _TAKEN),
    Attack("archives are a text", _ours(archives="x"), "an error"),
    Attack("archives of a platform that is none", lambda d: d["tenv"]["archives"].update({"../x": []}), _TAKEN),
    Attack("an unknown key", _ours(scripts=["rm -rf ~"]), _TAKEN),
    Attack("an unknown key at the top", lambda data: data.update(scripts=["x"]), _TAKEN),
    Attack("another environment", lambda d: d["environments"].update(other={"channels": [], "packages": {}}), _TAKEN),
    Attack("no wheels, as if for no platform", _ours(wheels={}), "status 0 and an empty environment"),
    Attack("wheels of a platform that is none", lambda d: d["tenv"]["wheels"].update({"beos": []}), _TAKEN),
    Attack("the manifest's digest is none", _ours(manifest="x"), _TAKEN),
    Attack("requirements unknown", _ours(requirements={"root": "1"}), _TAKEN),
    Attack("requirements of another type", _ours(requirements={"cuda": ["12.1"]}), _TRACE),
    Attack("requirements that are no version", _ours(requirements={"cuda": "../.."}), _TRACE),
    Attack("requests of another type", _ours(requests={"linux-64": {"archives": {"magma": 5}}}), _TRACE),
    Attack("requests with an escape", _ours(requests={"linux-64": {"system": {"\x1b]0;x": ["*"]}}}), "it was shown"),
    Attack("written by an escape", _ours(written_by="\x1b[2J"), "the screen was cleared"),
    Attack("a wheel's name climbs", _wheel(name="../a"), "an error"),
    Attack("a wheel's file climbs", _wheel(file="../a-1-py3-none-any.whl"), "an error"),
    Attack("a wheel of another name", _wheel(file="b-1-py3-none-any.whl"), "an error"),
    Attack("a wheel's Python is a command", _wheel(python=["3.11; rm"]), _TAKEN),
    Attack("a wheel's Python is a text", _wheel(python="3.11"), "an error"),
    Attack("a wheel for no Python", _wheel(python=[]), _TAKEN),
    Attack("a wheel without a hash", _wheel(sha256=None), "an error"),
    Attack("a wheel with an option for uv", _wheel(name="--index-url=http://evil"), "an error"),
    Attack("a wheel's version is an option", _wheel(version="1 --index-url=x"), "an error"),
    Attack(
        "a name with two wheels for one Python",
        lambda d: [_wheel(sha256=end * 32)(d) for end in ("ab", "cd")],
        "uv was given both, and took either",
    ),
    Attack("a conda package from the disk", _conda("file:///tmp/linux-64/../x-1-0.conda"), _ASKED),
    Attack("a conda package of ftp", _conda("ftp://example.org/c/linux-64/a-1-0.conda"), _ASKED),
    Attack("a conda package with a password", _conda("https://u:p@example.org/c/linux-64/a-1-0.conda"), "it was sent"),
    Attack("a conda package of no address", _conda("http://[/linux-64/a-1-0.conda"), _TRACE),
    Attack("a conda package of another name", _conda(name="b"), "an error of rattler"),
    Attack("a conda package of another version", _conda(version="2"), "an error of rattler"),
    Attack("a conda package of a channel beside its address", _conda(channel="https://example.org/c"), _TAKEN),
    Attack("a conda package for a platform beside its address", _conda(subdir="win-64"), "an error"),
    Attack("a conda package of a folder that is none", _conda(f"{_HOST}/../linux-64/a-1-0.conda"), _ASKED),
    Attack("a conda package without a digest", _conda(sha256=None), "an error, at its download"),
    Attack("a conda package of another kind of row", lambda d: (_conda()(d), d["packages"].append(5)), _TRACE),
    Attack(
        "a channel with a password",
        lambda d: d["environments"]["tiny"].update(channels=[{"url": "https://u:p@example.org/c"}]),
        _TAKEN,
    ),
    Attack("channels are a text", lambda d: d["environments"]["tiny"].update(channels="x"), _TRACE),
    Attack("environments are missing", lambda d: d.pop("environments"), _TRACE),
    Attack("packages of the environment are a list", lambda d: d["environments"]["tiny"].update(packages=[1]), _TRACE),
    Attack("the target is another", _ours(target="other"), "an error"),
    Attack("the target climbs", _ours(target="../x"), "an error"),
)

COMMANDS = (
    ("lock", "tiny", "--check"),
    ("create", "tiny", "--locked"),
    ("create", "tiny", "--frozen"),
    ("export", "pixi", "tiny", "-o", "exported"),
)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The lock of the module's target, made once."""
    return {}


@pytest.fixture
def attacked(project: Project, served: Server, texts: dict[str, str]) -> Project:
    """A target of two archives, locked; what its servers were asked is forgotten."""
    url = "https://developer.download.nvidia.com/magma-cuda121-2.6.1-1.tar.bz2"
    ask(project, 'cunovel = "7.1.0"', f'magma = {{ url = "{url}" }}')
    if not texts:
        project.ok("lock", "tiny", "--trust-first-use")
        texts["lock"] = project.lock.read_text()
    project.lock.parent.mkdir(exist_ok=True)
    project.lock.write_text(texts["lock"])
    served.asked.clear()
    return project


def test_the_lock_that_is_attacked_is_in_order(attacked: Project) -> None:
    attacked.ok("lock", "tiny", "--check")
    attacked.ok("create", "tiny", "--locked")
    assert attacked.state()["state"] == "ready"


def test_a_value_that_no_manifest_may_have_is_refused(attacked: Project, served: Server) -> None:
    """The commands go round: each reads a quarter of the attacks, all of them by the one reader of locks."""
    victims, text = make_victims(attacked), attacked.lock.read_text()
    before = victims.hashes()
    for number, attack in enumerate(ATTACKS):
        data = yaml.safe_load(text)
        attack.change(data)
        attacked.lock.write_text(yaml.safe_dump(data, sort_keys=False))
        words = COMMANDS[number % len(COMMANDS)]
        ended = call(*words)
        assert ended.status == 7, (attack.name, words, ended.out, ended.err)
        assert ended.err.count("error[lock-") == 1, (attack.name, ended.err)
        assert "\x1b" not in ended.err, attack.name
        assert victims.hashes() == before, attack.name
        assert served.asked == [], attack.name
        assert not attacked.prefix.exists(), attack.name


_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(f'*{old}' for _ in range(9))}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
_MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))

TEXTS = {
    "brackets in a comment, then deep": b"# ]]]]\n" + b"[" * 200_000,
    "deep after a carriage return": b"# x\r" + b"[" * 200_000,
    "deep after a line separator": "# x\u2028".encode() + b"[" * 200_000,
    "deep in UTF-16": ("[" * 100_000).encode("utf-16"),
    "deep keys": b"? " * 200_000,
    "deep block": b"".join(b" " * n + b"a:\n" for n in range(2000)),
    "a bomb of aliases": _BOMB.encode(),
    "a bomb of merge keys": _MERGES.encode(),
    "a number of base 60": b"tenv: {schema: " + b"1:" * 200_000 + b"1}",
    "a number of many digits": b"tenv: {schema: " + b"9" * 1_000_000 + b"}",
    "a tag": b"tenv: !!python/object/apply:os.system ['touch /tmp/tenv-attack']",
    "a key twice": b"tenv: {schema: 6, schema: 6}",
    "two documents": b"--- {}\n--- {}\n",
    "null bytes": b"tenv:\0 x",
    "not UTF-8": b"tenv: \xff\xfe",
    "nothing": b"",
    "a conflict": b"<<<<<<< ours\nx: 1\n=======\nx: 2\n>>>>>>> theirs\n",
}


@pytest.mark.timeout(300)
@each("name", TEXTS)
def test_a_text_that_stops_a_parser_is_refused(name: str, attacked: Project, served: Server) -> None:
    attacked.lock.write_bytes(TEXTS[name])
    for words in (*COMMANDS, ("diff", str(attacked.lock), str(attacked.lock))):
        ended = call(*words)
        assert (ended.status, ended.err.count("error[lock-")) == (7, 1), (words, ended.err)
    assert served.asked == []


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "make",
    [
        _pipe,
        _link_to_pipe,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("/dev/tty"),
        Path.mkdir,
        lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    ],
    ids=["pipe", "link to a pipe", "endless", "terminal", "folder", "huge"],
)
def test_what_is_no_small_regular_file_is_not_read(make: Callable[[Path], object], attacked: Project) -> None:
    for file, statuses in ((attacked.lock, (7,)), (attacked.manifest, (2, 3))):  # 2: it passes for no manifest
        kept = file.read_bytes()
        file.unlink()
        make(file)
        for words in (("lock", "tiny", "--check"), ("create", "tiny", "--frozen")):
            ended = call(*words)
            assert ended.status in statuses, (words, ended.err)
        assert "error[bug]" not in call("show", "tiny").err
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
        file.with_name("pipe").unlink(missing_ok=True)
        file.write_bytes(kept)
