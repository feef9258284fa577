"""No file of a public repository loses anything in silence, and none that is sound is refused.

`tests/interop/public_files.toml` has the files; the printed table (`-rP`) has the reasons.
"""

from collections import Counter

import pytest

from tests.interop.public_files import FILES, PublicFile, judge


@pytest.mark.usefixtures("empty_project")
@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_public_file_comes_in_as_well_as_its_row_has_it(file: PublicFile) -> None:
    found, reason = judge(file)
    print(f"{found}: {file}: {reason}")  # noqa: T201 (the table)
    assert found == file.now, reason


def test_the_score_of_all_public_files() -> None:
    assert len(FILES) >= 60
    print(Counter(file.first for file in FILES), Counter(file.now for file in FILES))  # noqa: T201 (the score)
