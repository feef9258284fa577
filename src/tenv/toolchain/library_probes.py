"""Short programs that test the libraries of a toolchain: each is linked, run, and its answer compared with its header.

None of them needs a driver or a GPU: the functions that they call return a version.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.core.names import infos_of
from tenv.toolchain.discover import Toolchain
from tenv.toolchain.probe import Probe

__all__ = ["library_probes"]

_VERSION = """\
#include <cstdio>
#include <{header}>
int main() {{
    {ask}
    std::printf("header %ld, library %ld\\n", (long)({expected}), (long)got);
    return got == ({expected}) ? 0 : 1;
}}
"""

# Each: the header, the statements that set `got`, and what the header says that it is to be.
_CUDNN = ("cudnn.h", "size_t got = cudnnGetVersion();", "CUDNN_VERSION")
_ASK_CUSPARSELT = """\
int a = 0, b = 0;
    if (cusparseLtGetProperty(MAJOR_VERSION, &a) || cusparseLtGetProperty(MINOR_VERSION, &b)) return 2;
    int got = 1000 * a + b;"""
_CUSPARSELT = ("cusparseLt.h", _ASK_CUSPARSELT, "1000 * CUSPARSELT_VER_MAJOR + CUSPARSELT_VER_MINOR")
_NCCL = ("nccl.h", "int got = 0; if (ncclGetVersion(&got)) return 2;", "NCCL_VERSION_CODE")

_MAGMA = """\
#include <magma_v2.h>
int main(int count, char **) {
    if (count > 99) { magma_int_t a, b, c; magma_version(&a, &b, &c); magma_init(); }
    return MAGMA_VERSION_MAJOR >= 2 ? 0 : 1;
}
"""

_OPENMP = """\
#include <omp.h>
#include <cstdio>
int main() {
    long sum = 0;
    #pragma omp parallel for reduction(+:sum) num_threads(4)
    for (int i = 0; i < 1000; ++i) sum += i;
    std::printf("%ld with OpenMP %d\\n", sum, _OPENMP);
    return sum == 499500 ? 0 : 1;
}
"""

_KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }\n"

_TORCH = """\
import os, torch
from torch.utils.cpp_extension import load_inline
source = "torch::Tensor twice(torch::Tensor x) { return x + x; }"
os.makedirs("build")
probe = load_inline("probe", cpp_sources=source, functions=["twice"], build_directory=os.path.abspath("build"))
assert probe.twice(torch.ones(2)).tolist() == [2.0, 2.0]
"""

_ARCH = re.compile(r"(\d+)\.(\d)([af]?)(\+PTX)?", re.IGNORECASE)


def library_probes(toolchain: Toolchain, environ: Mapping[str, str], compiler: tuple[str, ...]) -> Iterator[Probe]:
    """Yield the probes for the libraries of a toolchain.

    Args:
        toolchain: The tools of the prefix.
        environ: The environment variables with the toolchain active.
        compiler: The words that call the C++ compiler.
    """
    if not any("clang" in Path(word).name for word in compiler):  # its OpenMP is a package of its own
        build = (*compiler, "-fopenmp", "-o", "probe", "probe.cpp")
        yield Probe("openmp", {"probe.cpp": _OPENMP}, (build, ("./probe",)))
    if toolchain.nvcc:
        for option, name in _architectures(environ.get("TORCH_CUDA_ARCH_LIST", "")):
            yield Probe(f"nvcc-{name}", {"probe.cu": _KERNEL}, ((str(toolchain.nvcc), *option, "-c", "probe.cu"),))
    for name, root, library, program in (
        ("cudnn", toolchain.cudnn, "cudnn", _CUDNN),
        ("cusparselt", toolchain.cusparselt, "cusparseLt", _CUSPARSELT),
        ("nccl", toolchain.nccl, "nccl", _NCCL),
    ):
        if root:
            yield _version(name, root, library, program, toolchain, compiler)
    if toolchain.magma:
        yield _magma(toolchain.magma, toolchain, compiler)
    if _has_torch(toolchain) and toolchain.python.exists():
        yield Probe("torch-extension", {"probe.py": _TORCH}, ((str(toolchain.python), "probe.py"),))


def _architectures(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield nvcc's option for each architecture of a TORCH_CUDA_ARCH_LIST, with a name, without names of families."""
    for word in dict.fromkeys(re.split(r"[;\s,]+", text)):
        if match := _ARCH.fullmatch(word):
            number = f"{int(match[1])}{match[2]}{match[3].lower()}"
            code = f"[sm_{number},compute_{number}]" if match[4] else f"sm_{number}"
            yield ("-gencode", f"arch=compute_{number},code={code}"), number


def _headers(root: Path, toolchain: Toolchain) -> list[str]:
    folders = [root / "include", *([toolchain.cuda / "include"] if toolchain.cuda else [])]
    return [f"-I{folder}" for folder in dict.fromkeys(folders)]


def _libraries(root: Path, toolchain: Toolchain) -> list[str]:
    roots = dict.fromkeys([root, *([toolchain.cuda] if toolchain.cuda else [])])
    folders = [folder for one in roots for folder in (one / "lib64", one / "lib") if folder.is_dir()]
    return [word for folder in folders for word in (f"-L{folder}", f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{folder}")]


def _version(
    name: str, root: Path, library: str, program: tuple[str, str, str], toolchain: Toolchain, compiler: tuple[str, ...]
) -> Probe:
    header, ask, expected = program
    text = _VERSION.format(header=header, ask=ask, expected=expected)
    # NCCL's libraries name symbols of the driver, which the loader looks up when they are called.
    words = ["-Wl,--allow-shlib-undefined", *_libraries(root, toolchain), f"-l{library}"]
    build = (*compiler, *_headers(root, toolchain), "-o", "probe", "probe.cpp", *words)
    return Probe(name, {"probe.cpp": text}, (build, ("./probe",)))


def _magma(root: Path, toolchain: Toolchain, compiler: tuple[str, ...]) -> Probe:
    """Return the probe for MAGMA: it is linked, and not run, since it is static and asks for a GPU."""
    words = ["-Wl,--unresolved-symbols=ignore-all", *_libraries(root, toolchain), "-lmagma"]
    build = (*compiler, *_headers(root, toolchain), "-o", "probe", "probe.cpp", *words)
    return Probe("magma", {"probe.cpp": _MAGMA}, (build,))


def _has_torch(toolchain: Toolchain) -> bool:
    site = toolchain.site_packages
    return (site / "torch" / "__init__.py").is_file() or any(site.glob(infos_of("torch")))
