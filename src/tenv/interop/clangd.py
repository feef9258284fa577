"""clangd: the place of the compile commands, and the options for CUDA sources that nvcc compiled.

clangd is a clang: it knows neither nvcc's options nor where this environment's headers are
(https://clangd.llvm.org/config).
"""

from pathlib import Path
from typing import Any

from tenv.interop.interface import Exported, Format, Site, Subject, add_block, block

_NVCC_OPTIONS = (
    *("-forward-unknown-to-host-compiler", "--forward-unknown-to-host-compiler", "-forward-unknown-opts"),
    *("-gencode*", "--generate-code*", "arch=*", "-arch=*", "--gpu-architecture*", "-code=*", "--gpu-code*"),
    *("-ccbin*", "--compiler-bindir*", "-Xcompiler*", "--compiler-options*", "-Xfatbin*", "-compress*", "--compress*"),
    *("-Xcudafe*", "--diag_suppress*", "-Xptxas*", "--ptxas-options*", "-Xnvlink*", "-rdc*", "--relocatable*", "-dc"),
    *("--expt-*", "-expt-*", "--extended-lambda", "-extended-lambda", "--use_fast_math", "-use_fast_math", "-lineinfo"),
    *("--threads*", "-t=*", "-Wno-deprecated-gpu-targets", "--source-in-ptx", "--options-file*", "-allow-unsupported*"),
    *(
        "--Werror*",
        "-Werror*",
        "--display-error-number",
        "-MF*",
        "-MT*",
        "-MD",
        "-MMD",
        "-static-global-template-stub*",
    ),
)
"""Options of nvcc that PyTorch, CMake or torch.utils.cpp_extension give and clang does not know or means otherwise."""

_ARCH = "sm_80"
"""Known to every clang from 11 on and to every CUDA from 11 on; sources are read, not built."""


_KNOWN_CUDA = "11.0"
"""A CUDA that clang knows, from 11 on. Without one, or with one that it does not know, clang 22 takes a launch of a
kernel for the one of CUDA before 9.2 and reports `cudaConfigureCall` as undeclared."""

_FALSE_ALARM = "typename_nested_not_found"
"""clangd 14 and 16 report by it, in CUDA sources alone, each constructor of libstdc++ 12 that SFINAE rules out."""


def query_drivers(site: Site) -> list[str]:
    """Return clangd's option that lets it ask the environment's own compiler for its headers."""
    compilers = {site.environ.get(name, "") for name in ("CC", "CXX")}
    own = sorted(path for path in compilers if path.startswith(str(site.prefix)))
    return [f"--query-driver={','.join(own)}"] if own else []


def _export(subject: Subject) -> Exported:
    import yaml  # late: few commands write YAML

    site = subject.site
    if site is None:
        raise ValueError("no environment")
    build = (site.checkout or site.folder) / "build"
    after = [word for folder in _headers(site) for word in ("-idirafter", str(folder))]
    fragments: list[dict[str, Any]] = [{"CompileFlags": {"CompilationDatabase": str(build), "Add": after}}]
    if site.toolchain.cuda:
        options = ["-xcuda", f"--cuda-path={site.toolchain.cuda}", f"--cuda-gpu-arch={_ARCH}", "-nocudalib"]
        options += ["-Wno-unknown-cuda-version", "-Wno-unknown-warning-option"]
        options += ["-Xclang", f"-target-sdk-version={_KNOWN_CUDA}"]
        flags = {"Compiler": "clang++", "Remove": ["-x", *_NVCC_OPTIONS], "Add": options}
        silent = {"Suppress": [_FALSE_ALARM]}
        fragments.append({"If": {"PathMatch": r".*\.(cu|cuh)"}, "CompileFlags": flags, "Diagnostics": silent})
    text = "---\n".join(yaml.safe_dump(fragment, sort_keys=False, width=110) for fragment in fragments)
    notes = []
    if not (build / "compile_commands.json").is_file():
        by = "CMAKE_EXPORT_COMPILE_COMMANDS=1" if site.beside else f"`tenv build {subject.manifest.name}`"
        notes.append(f"{build / 'compile_commands.json'} comes with a build: {by}")
    notes += [f"start clangd with {option}" for option in query_drivers(site)]
    if not site.program("clangd"):
        notes.append("clangd is not on PATH; `sudo apt install clangd` brings it on Debian and Ubuntu")
    return Exported({".clangd": block(text)}, notes=tuple(notes))


def _headers(site: Site) -> list[Path]:
    """Return the folders with the headers of torch, Python, CUDA and the environment's packages."""
    tools, site_packages = site.toolchain, site.toolchain.site_packages
    torch = [root / "torch" / "include" for root in (site.checkout, site_packages) if root]
    python = tools.python.resolve().parent.parent / "include" / f"python{site.python}"
    folders = [*torch, *(folder / "torch" / "csrc" / "api" / "include" for folder in torch), python]
    folders += [root / "include" for root in (tools.cuda, site.prefix) if root]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


FORMAT = Format(
    name="clangd",
    export=_export,
    needs_environment=True,
    holds_lock=False,
    add=add_block,
)
