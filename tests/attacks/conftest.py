"""The same servers and channels as for the verbs."""

from tests.verbs.conftest import conda, python_package, served

__all__ = ["conda", "python_package", "served"]
