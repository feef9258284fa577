"""Which host to judge, by the options of a command."""

from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass

if TYPE_CHECKING:
    from tenv.host.report_json import Given

__all__ = ["HostOptions"]


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Which host to judge if it is not this machine.

    Attributes:
        host_report: A file from ``tenv host --json`` or a pasted report, ``-`` for standard input; empty for this
            machine.
        assume_driver: The kernel driver's version to assume, or an empty string.
        assume_gpu: The name of the GPU to assume, or an empty string.
        given: The content of the file if it was already read.
    """

    host_report: str = ""
    assume_driver: str = ""
    assume_gpu: str = ""
    given: "Given | None" = None
