"""Find the environments at hand."""

from tenv.environment import Environment, State
from tenv.workflows.context import Context

__all__ = ["find_environments"]


def find_environments(context: Context) -> list[tuple[Environment, State]]:
    """Return the environments of the project, then those of the user's data folder, each with its state."""
    folders = {context.places.environments(): None, context.places.data / "envs": None}
    found = []
    for folder in folders:
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            environment = Environment(path)
            state = environment.state()
            if state:
                found.append((environment, state))
    return found
