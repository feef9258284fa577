"""The supported layouts in the order of trust: if two disagree, the first one counts."""

from tenv.host.pasted.collect_env import COLLECT_ENV, WARNING
from tenv.host.pasted.compiler_output import COMPILER_OUTPUT
from tenv.host.pasted.conda_info import CONDA_INFO
from tenv.host.pasted.detectron2 import DETECTRON2, MMCV
from tenv.host.pasted.device_query import DEVICE_QUERY
from tenv.host.pasted.free_list import FREE_LIST, SENTENCES
from tenv.host.pasted.lightning import LIGHTNING
from tenv.host.pasted.module_line import MODULE_LINE
from tenv.host.pasted.smi_query import SMI_QUERY, SMI_ROWS
from tenv.host.pasted.smi_table import SMI_LIST, SMI_TABLE

__all__ = ["LAYOUTS"]

LAYOUTS = (
    MODULE_LINE,  # the kernel module itself
    SMI_QUERY,
    SMI_ROWS,
    SMI_TABLE,
    SMI_LIST,
    COMPILER_OUTPUT,  # a program's own answer, before reports about it
    DEVICE_QUERY,
    WARNING,
    COLLECT_ENV,
    DETECTRON2,
    MMCV,
    LIGHTNING,
    CONDA_INFO,
    FREE_LIST,
    SENTENCES,
)
