"""Marks of environments that a test makes by hand, where it would take too long to create them."""

from pathlib import Path

from tenv.environment.marks import Registry

__all__ = ["mark"]


def mark(prefix: Path, home: Path, *needs: str) -> None:
    """Mark a prefix as made by this user.

    Args:
        prefix: The folder.
        home: The folder of environments outside a project, beside which the marks are.
        needs: What must be there before a shell may run the stored script.
    """
    Registry(home.parent, tuple).mark(prefix, needs)
