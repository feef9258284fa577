"""Values of a pasted text: one item on one line."""

from collections.abc import Callable, Iterable, Sequence

from tenv.core.dataclass import dataclass
from tenv.core.worded import Worded

__all__ = ["Item", "Line", "PasteLayout", "PastedGpu", "Said", "Value"]


class Item(Worded):
    """The items that a pasted text can describe."""

    PLATFORM = "platform", "the platform"
    OS = "os", "the operating system"
    WSL = "wsl", "whether this is WSL"
    PYTHON = "python", "the version of Python"
    PYTORCH = "pytorch", "the version of PyTorch"
    PYTORCH_CUDA = "pytorch_cuda", "the CUDA that PyTorch was built with"
    CUDA_AVAILABLE = "cuda_available", "whether PyTorch sees a GPU"
    DRIVER = "driver", "the version of the driver"
    DRIVER_IN_WSL = "driver_in_wsl", "a second number of nvidia-smi under WSL"
    MODULE = "module", "the kind of the kernel module"
    CUDA = "cuda", "the CUDA that the driver offers"
    TOOLKIT = "toolkit", "the version of nvcc"
    TOOLKIT_PATH = "toolkit_path", "CUDA_HOME"
    GCC = "gcc", "the version of gcc or g++"
    CLANG = "clang", "the version of clang"
    CMAKE = "cmake", "the version of CMake"
    GLIBC = "glibc", "the version of the GNU C library"
    CORES = "cores", "how many processors there are"
    GPUS = "gpus", "which GPUs there are"
    OTHER = "other", "none of these"


@dataclass(frozen=True, slots=True)
class PastedGpu:
    """A GPU as a text describes it.

    Attributes:
        name: Its name as printed; it ends with three dots where nvidia-smi cut it. Empty where the text has none.
        memory: MiB; None if the text does not have it.
        capability: Its compute capability, or an empty string.
        address: Its PCI address as printed, or an empty string.
        mig: Whether it is split into instances; None if the text does not have it.
        instances: The profiles of its listed instances.
    """

    name: str
    memory: int | None = None
    capability: str = ""
    address: str = ""
    mig: bool | None = None
    instances: tuple[str, ...] = ()

    @property
    def cut(self) -> bool:
        """Whether the name is truncated."""
        return self.name.endswith("...")


Value = str | bool | tuple[PastedGpu, ...] | None


@dataclass(frozen=True, slots=True)
class Line:
    """A cleaned line of a text.

    Attributes:
        number: Its number in the text, from 1.
        text: The line.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """A value in a text.

    Attributes:
        item: The item that it describes.
        value: The value; None if the text reports that it could not be collected.
        line: The number of the line.
        words: The text in place of a value, such as ``Could not collect``.
    """

    item: Item
    value: Value
    line: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class PasteLayout:
    """A form of machine descriptions.

    Attributes:
        name: Its common name: ``nvidia-smi -q``.
        read: Yields the values of a text in this form; nothing for other texts.
    """

    name: str
    read: Callable[[Sequence[Line]], Iterable[Said]]
