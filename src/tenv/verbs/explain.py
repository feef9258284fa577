"""Find the page of a rule."""

from dataclasses import asdict
from pathlib import Path

import tenv
from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.toml_reader import nearest

__all__ = ["Page", "codes", "explain"]


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a rule.

    Attributes:
        code: The rule's code.
        title: Its title.
        text: The whole page, in Markdown.
    """

    code: str
    title: str
    text: str

    def to_json(self) -> dict[str, str]:
        """Return the page as JSON values."""
        return asdict(self)


def codes() -> tuple[str, ...]:
    """Return the code of every rule."""
    return tuple(page.stem for page in sorted(_folder().glob("TE*.md")))


def explain(code: str) -> Page:
    """Return the page of a rule; raises UsageError for an unknown code."""
    pages = {page.stem: page for page in sorted(_folder().glob("TE*.md"))}
    if code.upper() not in pages:
        hint = nearest(code.upper(), pages) or f"the rules are {min(pages)} to {max(pages)}: `tenv explain TE101`"
        raise UsageError(f"there is no rule `{code}`", hint=hint)
    text = pages[code.upper()].read_text(encoding="utf-8")
    title = text.splitlines()[0].removeprefix("#").strip().removeprefix(f"{code.upper()}:").strip()
    return Page(code.upper(), title, text)


def _folder() -> Path:
    """Return the folder of the pages: inside the wheel, or in the checkout of an editable install."""
    package = Path(tenv.__file__).parent
    carried = package / "builtin" / "rules"
    return carried if carried.is_dir() else package.parent.parent / "docs" / "rules"
