"""TE308: a CUDA toolkit that is not whole."""

from typing import Any

from tenv.host.interface import Missing
from tenv.host.report import ProblemKind, ToolkitProblem
from tests.checks.rules.cases import toolkit

NO_NVCC = ToolkitProblem(ProblemKind.NO_NVCC, "it has no bin/nvcc")

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {
    "toolkits": (
        toolkit(
            "/usr/local/cuda-12.1",
            "12.8",
            "/usr/local/cuda",
            components=(("cuda_cudart", "12.1.105"), ("cuda_nvcc", "12.8.61")),
            problems=(ToolkitProblem(ProblemKind.RELEASE, "version.json has 12.1.1, nvcc has 12.8"),),
        ),
    )
}
SILENT: list[dict[str, Any]] = [
    {"toolkits": (toolkit("/a", "12.4", "CUDA_HOME", components=(("cuda_nvcc", "12.4.131"),)),)},
    {
        "toolkits": (
            toolkit(
                "/a",
                "12.4",
                "/usr/local/cuda-12.4",
                problems=(NO_NVCC,),
            ),
        )
    },
    {"toolkits": Missing("no")},
]
