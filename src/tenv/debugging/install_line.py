"""The command that brings a package into an environment beside its lock."""

from pathlib import Path

__all__ = ["install_line"]


def install_line(target: str, package: str, site_packages: Path) -> str:
    """Return the command that installs a package from the index into an environment.

    Args:
        target: The target.
        package: The package.
        site_packages: Where the environment keeps packages; not every one has pip.
    """
    if (site_packages / "pip").is_dir():
        return f"tenv run {target} -- python -m pip install {package}"
    return f"tenv run {target} -- sh -c 'python -m ensurepip && python -m pip install {package}'"
