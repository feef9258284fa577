import os

from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root


def library(said: str | None) -> Machine:
    def machine(root: Root, patch: Patch) -> Places:
        patch.setattr(os, "confstr", lambda _: said)
        return places(root)

    return machine


CASES = [
    Present(library("glibc 2.35"), "2.35", OriginKind.SYSTEM, ("2.35",)),
    Absent(library("musl"), ReasonKind.NOT_GLIBC, "the C library is musl"),
    Absent(library(None), ReasonKind.NOT_GLIBC, "the C library is not GNU"),
]
