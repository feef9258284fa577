"""No file of a public repository loses anything in silence, and none that is sound is refused.

`tests/interop/public_files.toml` has the files; the printed table (`-rP`) has the reasons.
"""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tenv.locks.lock_file import read_lock
from tests.interop.lock_index import LockIndex, Release
from tests.interop.public_files import FILES, judge
from tests.support.projects import call

FILES_THAT_COME_BACK = 28
EQUAL = 16
NAMED = ("no Python from conda", "pixi requires a Python", "MD5")
"""What an export reports of a lock that its format can't hold."""


@pytest.mark.usefixtures("empty_project")
@pytest.mark.parametrize("back", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_public_file_comes_in_as_well_as_its_row_has_it_and_its_lock_comes_back_from_pixi_and_conda_lock(
    back: bool,
) -> None:
    trips, wrong = dict[str, list[str]](), []
    for file in FILES if back else FILES[::6]:
        for path in Path().iterdir():  # the files of others would be read beside it
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        Path("manifests").mkdir()
        Path("tenv.toml").touch()
        found, reason = judge(file)
        print(f"{found}: {file}: {reason}")  # noqa: T201 (the table)
        wrong += [(str(file), found, reason)] if found != file.now else []
        for form in ("pixi", "conda-lock") if back and Path("locks/made.lock").exists() else ():
            if came := _comes_back(form, str(file)):
                trips.setdefault(str(file), []).append(f"{form}: {came}")
    print("\n".join(f"{file}: {'; '.join(came)}" for file, came in trips.items()))  # noqa: T201 (the table)
    assert wrong == []
    assert len(trips) >= FILES_THAT_COME_BACK or not back
    assert sum("equal" in came[0] for came in trips.values()) >= EQUAL or not back


def _comes_back(form: str, what: str) -> str:
    """Export the target `made`, import it again and compare the packages.

    Returns:
        ``equal``, or the words in which the export names what the format lacks; empty for a lock of source trees or
        of several indexes, which are not served here.
    """
    before = read_lock(Path("locks/made.lock"), "made")
    rows = {row.sha256: row for wheels in before.wheels.values() for row in wheels}
    releases = [Release(row.name, row.version, row.file, row.sha256, row.requires or ()) for row in rows.values()]
    with LockIndex(releases) as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        if len(before.indexes) > 1 or any(before.trees.values()):
            return ""
        for path in (Path("manifests/made.toml"), Path("locks/made.lock")) if before.indexes else ():
            path.write_text(path.read_text().replace(before.indexes[0].url, index.url))
        shutil.rmtree("out", ignore_errors=True)
        ended = call("export", form, "made", "-o", "out")
        main = Path("out") / ("pixi.lock" if form == "pixi" else "conda-lock.yml")
        if ended.status or not main.exists():
            named = next((words for words in NAMED if words in ended.err), "")
            assert named, (what, ended.err)
            return named
        back = call("import", str(main), "--name", "back", "--force")
    assert back.status == 0, (what, back.err)
    after = read_lock(Path("locks/back.lock"), "back")
    for platform in before.platforms:
        assert {row.url for row in after.conda[platform]} == {row.url for row in before.conda[platform]}, what
        assert {row.sha256 for row in after.wheels[platform]} == {row.sha256 for row in before.wheels[platform]}, what
    return "equal"


def test_the_score_of_all_public_files() -> None:
    now = Counter(file.now for file in FILES)
    assert len(FILES) >= 60
    assert now["loses in silence"] == now["refused wrongly"] == 0
    assert now["whole"] >= 45
    print(Counter(file.first for file in FILES), Counter(file.now for file in FILES))  # noqa: T201 (the score)
