"""Find the environments of the project and of the user."""

from tenv.environment.state import Environment, State, environments_in
from tenv.project.context import Context

__all__ = ["find_environments"]


def find_environments(context: Context) -> list[tuple[Environment, State]]:
    """Return the environments of the project, then of the user's data folder, each with its state."""
    folders = dict.fromkeys((context.places.environments(), context.places.data / "envs"))
    found = [environment for folder in folders for environment in environments_in(folder)]
    return [(environment, state) for environment in found if (state := environment.state())]
