"""Runs a command by the short way and by the program."""

from tenv.quick import short_way
from tests.support.projects import Ended, Project


def ways(project: Project, *words: str, wrapped: tuple[str, ...] = (), **environment: str) -> tuple[Ended, Ended]:
    """Run a command by the short way and by the program."""
    short = project.run(*words, wrapped=wrapped, environment=environment)
    return short, project.run(*words, wrapped=wrapped, environment={**environment, short_way.OFF: "0"})
