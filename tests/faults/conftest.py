"""The same channels as for the verbs."""

from tests.verbs.conftest import conda

__all__ = ["conda"]
