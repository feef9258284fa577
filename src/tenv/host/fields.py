"""The fields of the host report by name."""

from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any

from tenv.host.field import HostField
from tenv.host.report import HostReport

__all__ = ["host_fields"]


@cache
def host_fields() -> dict[str, HostField[Any]]:
    """Return the fields by name, in the order of the report.

    Their modules are loaded here and not with the report, since judging a driver needs only a few of them.
    """
    return {line.name: _field(line.metadata["field"]) for line in fields(HostReport)}


def _field(where: str) -> HostField[Any]:
    module, _, name = where.partition(":")
    found: HostField[Any] = getattr(import_module(f"tenv.host.{module}"), name)
    return found
