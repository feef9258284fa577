"""What a step is counted in is said by its type, whatever it is called and however large it is."""

from tenv.core.progress import Bytes, Joined, Silent
from tests.support.each import each


class Recorded(Silent):
    """Progress that keeps the steps that it hears of."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None]] = []

    def phase(self, name: str) -> None:
        self.steps.append((name, None))

    def step(self, title: str, total: int | None = None) -> None:
        self.steps.append((title, total))


@each(
    "title, total, heard",
    [
        ("fetching the rest", Bytes(100), Bytes(150)),
        ("downloading three things", 3, 3),
        ("downloading", None, None),
        ("counting grains", 10_000_000, 10_000_000),
    ],
)
def test_downloads_in_the_background_count_where_bytes_do(title: str, total: int | None, heard: int | None) -> None:
    progress = Recorded()
    Joined(progress, expected=50).step(title, total)
    assert progress.steps == [(title, heard)]
    assert isinstance(progress.steps[0][1], Bytes) is isinstance(heard, Bytes)


def test_a_named_step_is_handed_on() -> None:
    progress = Recorded()
    Joined(progress).phase("installing tiny")
    assert progress.steps == [("installing tiny", None)]
