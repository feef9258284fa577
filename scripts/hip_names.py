"""Write the facts about the names of HIP and its libraries: the releases that have each, and CUDA's names for them.

    python scripts/hip_names.py FOLDER >names.toml && mv names.toml src/tenv/facts/data/hip_names.toml

``FOLDER/NAME`` are git directories of AMD's repositories: HIP, hipamd and clr for HIP's headers, HIPIFY for its maps,
and the libraries of ``LIBRARIES``. HIP's headers of a later release come from the wheel of Triton on the index in use,
which brings them. Rows whose source is not one of these (HIP's changelog, for the releases in between and after) stay.
"""

import datetime as dt
import functools
import io
import itertools
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.hip_names import spelled

TABLE = Path(__file__).parent.parent / "src" / "tenv" / "facts" / "data" / "hip_names.toml"
HEAD = """\
# The names of HIP and of ROCm's libraries: the release that brought or dropped each; and those of CUDA for them.
# scripts/hip_names.py writes it, but for the rows of a changelog, which are written by hand.
# Columns of name
#   library, header  what declares the names; STRUCT.MEMBER is a member
#   since   the first release of ROCm that has them; "" for the oldest that was read (of 2016 to 2020)
#   after   the last release that was read and does not have them, where releases between were not read
#   gone    the first release that no longer has them
#   macro   what must be defined for them before the release `without_macro`
# Columns of changed
#   release  the first release with other types of arguments than the one before
# Columns of cuda
#   prefix, becomes  a name of CUDA that begins with the one and whose rest a name of HIP has behind the other is HIP's
#   renamed  those that HIP names otherwise: CUDA's=HIP's; alone: those that HIP has nothing for up to HIP 6.3

schema = 1
date = "{day}"

[sources]
{sources}
"""
SOURCES = {
    "TAGS": "the headers at the tags rocm-* (6.3: the revisions of October 2024) of github.com/ROCm/{{{repositories}}}",
    "HIPIFY": "the maps in src/CUDA2HIP_*.cpp of github.com/ROCm/HIPIFY ({hipify}, HIP 6.3)",
    "TRITON": "the headers of HIP {newest} in the wheel of Triton on the index; the releases before lack the name",
    "CLR": "projects/clr/CHANGELOG.md of github.com/ROCm/rocm-systems (03eb8e3)",
    "BLAS": "projects/hipblas/CHANGELOG.md of github.com/ROCm/rocm-libraries (053ddb7)",
    "RBLAS": "projects/rocblas/CHANGELOG.md of github.com/ROCm/rocm-libraries (0369281)",
    "RSPARSE": "projects/rocsparse/CHANGELOG.md of github.com/ROCm/rocm-libraries (0013cae)",
    "RCCL": "CHANGELOG.md of github.com/ROCm/rccl (008f6d1)",
}
OWN = ("TAGS", "HIPIFY", "TRITON")
"""The sources of the rows that this script writes."""
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
GUARD = re.compile(r"INCLUDE_|_H_?$|_HPP_?$|^HIP_(ENABLE|DISABLE|API_ID|\w*TABLE)_|R0000")
SKIPPED = re.compile(
    r"nvidia_|nvcc_|prof_str|elfio|program_state|hsa_helpers|/cuda/|code_object|hip_db|hip_gcc|/hip_hcc\.h|api_trace|hip_version"
)
STRUCT = re.compile(r"typedef struct \w*\s*\{(?P<body>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\s*(?P<name>hip\w+)\s*;")
MEMBER = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*;")
CALL = re.compile(r"\b(?P<name>{names})\s*\((?P<arguments>[^;{{}}()]*)\)\s*;")
OF_ITS_OWN = re.compile(
    r"(hiprtc|library_types|hip_(?:fp16|bf16|bfloat16|fp8|complex|cooperative_groups|ext|gl_interop|math_constants))(?=[._])"
)
"""Headers that HIP's runtime header does not include, or not in every release."""
GROUP = re.compile(
    r"\b((?:this_)?(?:grid|multi_grid|thread_block)(?:_group|_tile)?|(?:tiled|labeled|binary)_partition|coalesced_(?:group|threads)"
    r"|reduce|(?:in|ex)clusive_scan|memcpy_async|invoke_one|barrier_(?:arrive|wait)|(?:num_)?(?:threads|blocks)|block_rank"
    r"|meta_group_(?:size|rank)|ballot|match_a(?:ny|ll)|shfl\w*)\b"
)
MAP_ROW = re.compile(r'^\s*\{"([^"]+)",\s*\{"([^"]*)",\s*"([^"]*)",\s*([^}]*)\}\}', re.MULTILINE)
INTERNAL = re.compile(r"_(st|enum)$|Struct$|_v\d(_st)?$|\dx\d|^cudaChannelFormatKind|^[A-Z0-9_]+$(?<!NAN)")
"""Names of CUDA that errors rarely begin with: the tags of structs and enumerations, families of constants."""
OF_CUDA = re.compile(r"cu|CU|nv|__|make_cu|u?(ll)?(min|max)$")
"""Names of CUDA alone; a project may have others itself, such as saturate."""
VERSIONS = re.compile(r'^\s*\{"([^"]+)",\s*\{HIP_(\d+),\s*HIP_(\d+),\s*HIP_(\d+)\s*\}\}', re.MULTILINE)
CHANGED = re.compile(r'^\s*\{"([^"]+)",\s*\{HIP_(\d+)\}\}', re.MULTILINE)
DEVICE = re.compile(
    r"\b(__(?:shfl|ballot|any|all|match|reduce|activemask|sync(?:warp|threads)|ld[cg]|st[cw]|fns|lane|clz|ffs|brev|popc|byte_perm)\w*"
    r"|__(?:h|low|high|float|half|double|u?int|u?ll|u?short)[a-z0-9]*(?:_\w+)?|__\w*bfloat16\w*"
    r"|__[df](?:add|sub|mul|div|sqrt|rcp|ma)\w*|(?:un)?safeAtomic\w+|atomic[A-Z]\w+|h2?(?:sqrt|exp|log|sin|cos|rcp|rsqrt|div)\w*)\s*\("
)
LETTER = re.compile(r"(hip[a-z]+|cu[a-z]+(?:Dn|Sp)?|roc[a-z]+_)([A-Zcdshzt])(?=[a-z])")
"""The letter for a type in the name of a function."""
END = re.compile(r"((Strided)?Batched|(_strided)?_batched)?(_64)?$|_bufferSize(Ext)?$|$")
INNER = re.compile(r"__(has_|llvm|hip_(?!bfloat|fp\d|cvt))")
OLDEST = Version("1.5")
"""A name of HIP of this release or an older one is of every release."""
OLDEST_OTHER = Version("3.3")
"""That of its libraries: the last release before clang compiled HIP."""
CHANGES_SINCE = Version("5.0")
LEFT_OUT = {"1.8": "1.9", "3.2": "3.3", "3.4": "3.5", "3.6": "3.7", "4.4": "4.5"}
"""The numbers of HIP that no release of ROCm has, and the next release."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library of ROCm."""

    name: str
    """Its name."""
    header: str
    """The header that its users include; empty for HIP, which has several."""
    places: tuple[tuple[str, str], ...]
    """Its repositories, each with the folder of its headers."""
    names: str
    """The names that it declares."""


def _of(name: str, header: str, names: str, under: str = "library/include") -> Library:
    return Library(name, header, ((name if name != "RCCL" else "rccl", under),), names)


HIP = (("HIP", "include"), ("hipamd", "include"), ("clr", "hipamd/include"))
LIBRARIES = (
    Library(
        "HIP", "", HIP, r"hip[A-Z]\w+|hip_(?:bfloat|complex|vector)\w*|__hip_(?:bfloat|fp\d)\w+|HIP(?:RT)?_[A-Z]\w+"
    ),
    Library("hipRTC", "hip/hiprtc.h", HIP, r"hiprtc\w+|HIPRTC_\w+"),
    _of("hipBLAS", "hipblas/hipblas.h", r"hipblas[A-Z]\w+|HIPBLAS_\w+"),
    _of("hipBLASLt", "hipblaslt/hipblaslt.h", r"hipblas[Ll]t[A-Z]\w+|HIPBLASLT_\w+"),
    _of("hipSPARSE", "hipsparse/hipsparse.h", r"hipsparse[A-Z]\w+|HIPSPARSE_\w+"),
    _of("hipSOLVER", "hipsolver/hipsolver.h", r"hipsolver[A-Z]\w+|HIPSOLVER_\w+"),
    _of("hipFFT", "hipfft/hipfft.h", r"hipfft\w+|HIPFFT_\w+"),
    _of("hipRAND", "hiprand/hiprand.h", r"hiprand[A-Z_]\w+|HIPRAND_\w+"),
    _of("rocBLAS", "rocblas/rocblas.h", r"rocblas_\w+"),
    _of("rocSPARSE", "rocsparse/rocsparse.h", r"rocsparse_\w+"),
    _of("MIOpen", "miopen/miopen.h", r"miopen[A-Z]\w+", "include/miopen"),
    _of("RCCL", "rccl/rccl.h", r"nccl[A-Z]\w+", "src/nccl.h.in"),
)
BEFORE_ITS_TAG = {
    "HIP": {Version("6.3"): "HEAD"},
    "clr": {Version("6.3"): "release/rocm-rel-6.3.0.1"},
    "rccl": {Version("6.3"): "HEAD"},
}
"""Revisions of October 2024 with the number of a release."""
CUDA = {
    "CUDA's runtime": ("Runtime", "cuda", "hip"),
    "CUDA's driver": ("Driver", "cu", "hip"),
    "CUDA's kernels": ("Device", "__nv_", "__hip_"),
    "cuComplex": ("Complex", "cu", "hip"),
    "cuBLAS": ("BLAS", "cublas", "hipblas"),
    "cuDNN": ("DNN", "cudnn", "miopen"),
    "cuFFT": ("FFT", "cufft", "hipfft"),
    "cuRAND": ("RAND", "curand", "hiprand"),
    "NVRTC": ("RTC", "nvrtc", "hiprtc"),
    "cuSOLVER": ("SOLVER", "cusolver", "hipsolver"),
    "cuSPARSE": ("SPARSE", "cusparse", "hipsparse"),
}
"""The libraries of CUDA: the word in the names of HIPIFY's files, the prefix, and the prefix of HIP's names."""


class Repositories:
    """Git directories."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def git(self, name: str, *words: str) -> str:
        """Return the output of git in a repository."""
        command = ["git", "-C", str(self._folder / name), *words]
        return subprocess.run(command, capture_output=True, check=True, text=True, errors="replace").stdout

    @functools.cache  # noqa: B019 (one instance for each run)
    def tags(self, name: str) -> dict[Version, str]:
        """Return the first tag of each minor release of ROCm."""
        found: dict[Version, str] = {}
        tags = re.findall(r"^(rocm?-(\d+\.\d+(?:\.\d+)?))$", self.git(name, "tag"), re.MULTILINE)
        for tag, version in sorted(tags, key=lambda row: Version(row[1])):
            found.setdefault(Version(Version(version).major_minor), tag)
        return found | BEFORE_ITS_TAG.get(name, {})

    def texts(self, name: str, tag: str, under: str) -> Iterator[tuple[str, str]]:
        """Yield the headers of a tag below a folder, each with its path and its text without comments."""
        for line in self.git(name, "ls-tree", "-r", tag, under).splitlines():
            kind, path = line.split("\t")
            if kind.startswith("100") and re.search(r"\.h(pp|\.in)?$", path) and not SKIPPED.search(path):
                yield path, self._text(name, kind.split()[2])

    @functools.cache  # noqa: B019 (one instance for each run)
    def _text(self, name: str, blob: str) -> str:
        return COMMENT.sub(" ", self.git(name, "cat-file", "blob", blob))


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a library."""

    names: dict[str, str]
    """The names, each with its header."""
    arguments: dict[str, str]
    """The types of the arguments of its functions."""


def read(library: Library, texts: Iterable[tuple[str, str]]) -> Release:
    """Return the names that headers declare."""
    pattern, call = re.compile(rf"\b(?:{library.names})\b"), re.compile(CALL.pattern.format(names=library.names))
    names: dict[str, str] = {}
    arguments: dict[str, str] = {}
    for path, text in sorted(texts, key=lambda row: ("deprecated" in row[0], "bf" in row[0], "_detail/" in row[0])):
        header = library.header or public(path)
        found = {name for name in pattern.findall(text) if not GUARD.search(name)}
        if not library.header:
            found |= members(text) | {name for name in DEVICE.findall(text) if not INNER.match(name)}
            if "cooperative_groups" in path:
                found |= {f"cooperative_groups.{name}" for name in GROUP.findall(text)}
        names |= dict.fromkeys(found - names.keys(), header)
        for match in call.finditer(text):
            arguments.setdefault(match["name"], types(match["arguments"]))
    return Release(names, arguments)


def public(path: str) -> str:
    """Return the header that a user of HIP includes for another."""
    own = OF_ITS_OWN.search(path.rsplit("/", 1)[1])
    if own:
        return f"hip/{own[1]}.h"
    return "hip/hip_runtime.h" if "_detail/" in path and "runtime_api" not in path else "hip/hip_runtime_api.h"


def members(text: str) -> set[str]:
    """Return the members of HIP's structs, as STRUCT.MEMBER."""
    return {f"{one['name']}.{name}" for one in STRUCT.finditer(text) for name in MEMBER.findall(one["body"])}


def types(arguments: str) -> str:
    """Return the types of a function's arguments, without their names and defaults, and without const."""
    plain = [re.sub(r"__dparm\b.*|=.*|\bconst\b", "", one).strip() for one in arguments.split(",")]
    return ",".join(re.sub(r"\s*(?<=[\s*&])\w+$", "", one).replace(" ", "") for one in plain)


def newest_headers() -> tuple[str, list[tuple[str, str]]]:
    """Return the version and the headers of the HIP in Triton's wheel."""
    import zipfile

    from tenv.project.context import Context
    from tenv.sources.wheels.metadata import open_wheel

    context = Context()
    uv = context.uv()
    rows = max(uv.releases(["triton"], "3.12"), key=lambda row: Version(row["version"]))["wheels"]
    url = next(row["url"] for row in rows if "-cp312-" in row["url"] and "x86_64" in row["url"])
    file = open_wheel(uv.http, url)
    wheel = zipfile.ZipFile(io.BufferedReader(file.detach(), 1 << 20) if isinstance(file, io.BufferedReader) else file)
    texts = {name: wheel.read(name).decode() for name in wheel.namelist() if "/include/hip/" in name}
    version = next(text for name, text in texts.items() if name.endswith("/hip_version.h"))
    numbers = re.findall(r"VERSION_M(?:AJOR|INOR) (\d+)", version)
    read = {name: COMMENT.sub(" ", text) for name, text in texts.items() if not SKIPPED.search(name)}
    return ".".join(numbers), list(read.items())


def number(digits: str) -> Version | None:
    """Return the release of ROCm behind HIPIFY's HIP_5021; None for HIP_0."""
    if not int(digits):
        return None
    version = f"{digits[:-3]}.{int(digits[-3:-1])}"
    return Version(LEFT_OUT.get(version, version))


@dataclass(frozen=True, slots=True)
class History:
    """The releases of a name."""

    header: str
    """The header that declares it."""
    since: Version | None
    """The first release that has it; None for the oldest one that was read."""
    after: Version | None
    """The last release that was read before that one, where some lie between."""
    gone: Version | None
    """The first release without it."""


def histories(
    releases: Mapping[Version, Release], hipify: Mapping[str, Version], whole: Version, oldest: Version
) -> dict[str, History]:
    """Return the history of each name of a library.

    Args:
        releases: The names of each release, oldest first.
        hipify: The first release of names by HIPIFY.
        whole: The last release that was read with all headers; absence in a later one counts for its headers alone.
        oldest: A name of this release or an older one counts as one of every release.
    """
    found = {}
    order = list(releases)
    headers = set(releases[order[-1]].names.values())
    for name in {name for one in releases.values() for name in one.names}:
        has = [version for version in order if name in releases[version].names]
        place = order.index(has[0])
        is_read = place > 0 and not _apart(order[place - 1], has[0])  # HIPIFY names some a release too early
        since = has[0] if is_read else min(has[0], hipify.get(name, has[0])) if place or name in hipify else None
        after = order[place - 1] if place and since == has[0] and not is_read else None
        header = releases[has[-1]].names[name]
        is_gone = not DEVICE.match(f"{name}(") and (has[-1] < whole or (header in headers and has[-1] < order[-1]))
        gone = next((version for version in order if version > has[-1] and releases[version].arguments), None)
        if gone and is_gone and gone <= Version("2.0"):
            continue
        first = None if since is None or since <= oldest else since
        found[name] = History(header, first, after if first else None, gone if is_gone else None)
    return {name: one for name, one in found.items() if not _is_of_struct(name, one, found)}


def _is_of_struct(name: str, one: History, found: Mapping[str, History]) -> bool:
    """Return whether a name is a member that its struct had from its first to its last release."""
    struct = found.get(name.partition(".")[0]) if "." in name else None
    return struct is not None and (struct.since, struct.gone) == (one.since, one.gone)


def _apart(first: Version, second: Version) -> bool:
    """Return whether there are releases between two."""
    last = {"2.10": "3.0", "3.10": "4.0", "4.5": "5.0", "5.7": "6.0"}
    following = last.get(first.major_minor, f"{first.major}.{first.minor + 1}")
    return second.major_minor not in (following, LEFT_OUT.get(following))


def changes(releases: Mapping[Version, Release], known: Mapping[str, Version]) -> dict[Version, set[str]]:
    """Return the functions whose arguments changed with each release, by the headers and HIPIFY."""
    found: dict[Version, set[str]] = {}
    for (_, one), (version, two) in itertools.pairwise(releases.items()):
        for name in one.arguments.keys() & two.arguments.keys():
            if one.arguments[name] != two.arguments[name]:
                found.setdefault(version, set()).add(name)
    for name, version in known.items():
        if any(name in one.names for one in releases.values()):
            found.setdefault(version, set()).add(name)
    return found


@dataclass(frozen=True, slots=True)
class Hipify:
    """The maps of HIPIFY."""

    since: dict[str, Version]
    """The first release of names of HIP."""
    changed: dict[str, Version]
    """The release that changed functions of HIP."""
    renamed: dict[str, dict[str, str]]
    """By library of CUDA, its names and HIP's, where the prefix is not all that differs."""
    alone: dict[str, set[str]]
    """By library of CUDA, the names without a counterpart."""


def read_hipify(repositories: Repositories) -> Hipify:
    """Return the maps of HIPIFY's newest revision."""
    since: dict[str, Version] = {}
    changed: dict[str, Version] = {}
    renamed: dict[str, dict[str, str]] = {}
    alone: dict[str, set[str]] = {}
    files = repositories.git("HIPIFY", "ls-tree", "--name-only", "HEAD", "src/").split()
    for library, (word, prefix, becomes) in CUDA.items():
        pattern = rf"CUDA2HIP_{word}(_API)?_(functions|types)\.cpp"
        own = [file for file in files if re.search(pattern, file)]
        text = "\n".join(repositories.git("HIPIFY", "show", f"HEAD:{file}") for file in own)
        since |= {name: version for name, added, *_ in VERSIONS.findall(text) if (version := number(added))}
        changed |= {name: version for name, added in CHANGED.findall(text) if (version := number(added))}
        for name, hip, roc, rest in MAP_ROW.findall(text):
            if INTERNAL.search(name) or re.fullmatch(r"(CU|CUDA|CUDNN)_[A-Z0-9_]+", name) or not OF_CUDA.match(name):
                continue
            other = roc if becomes == "miopen" else re.sub(r"_v2(?=_64$|$)", "", hip)
            if re.search(r"\b(HIP_)?UNSUPPORTED\b", rest) or not other:
                if word not in ("DNN", "SOLVER"):  # long lists, of which hardly an error names one
                    alone.setdefault(library, set()).add(name)
            elif other not in (name, *regular(name, prefix, becomes)):
                renamed.setdefault(library, {})[name] = other
    return Hipify(since, changed, renamed, alone)


def regular(name: str, prefix: str, becomes: str) -> tuple[str, ...]:
    """Return the names of HIP that a name of CUDA has by the rules of `tenv.facts.hip_names`."""
    plain = re.sub(r"_v[2-9](?=_64$|$)", "", name)
    rest = plain.removeprefix("cudaDevAttr")
    return (becomes + plain.removeprefix(prefix), *(() if rest == plain else (f"hipDeviceAttribute{rest}",)))


def squeezed(names: Iterable[str]) -> set[str]:
    """Return names with families written as one word, ``hipblas[CDSZ]gemm(|Batched|_64)``."""
    letters: dict[tuple[str, str], set[str]] = {}
    for name in names:
        found = LETTER.match(name)
        first, letter = (found[1], found[2]) if found else ("", "")
        letters.setdefault((first, name[len(first) + len(letter) :]), set()).add(letter)
    ends: dict[tuple[str, str, str], set[str]] = {}
    for (first, rest), found in letters.items():
        word = f"[{''.join(sorted(found))}]" if len(found) > 1 else found.pop()
        end = END.search(rest)[0]
        ends.setdefault((first, word, rest.removesuffix(end)), set()).add(end)
    return {
        f"{first}{word}{rest}" + (f"({'|'.join(sorted(found))})" if len(found) > 1 else found.pop())
        for (first, word, rest), found in ends.items()
    }


def lines(key: str, words: Iterable[str]) -> str:
    """Return a list of words as a text of TOML."""
    return f'{key} = """\n' + " \\\n".join(textwrap.wrap(" ".join(sorted(words)), 116, break_long_words=False)) + '"""'


def name_rows(library: str, found: Mapping[str, History], source: str) -> Iterator[str]:
    """Yield a row for each header and each pair of releases."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, one in found.items():
        key = (one.header, *(str(version) if version else "" for version in (one.since, one.after, one.gone)))
        groups.setdefault(key, []).append(name)
    rows = sorted(groups.items(), key=lambda row: (row[0][0], *(Version(version or "0") for version in row[0][1:])))
    for (header, since, after, gone), names in rows:
        yield "\n".join(
            (
                "\n[[name]]",
                f'library = "{library}"',
                f'header = "{header}"',
                f'since = "{since}"',
                *((f'after = "{after}"',) if after else ()),
                *((f'gone = "{gone}"',) if gone else ()),
                lines("names", squeezed(names)),
                f"confirmed = {str(not after).lower()}",
                f'source = "{source if not after else "TRITON"}"',
            )
        )


def kept() -> tuple[str, set[str], set[str]]:
    """Return the rows that are written by hand, the names that they know, and those that they know a change of."""
    text = TABLE.read_text(encoding="utf-8") if TABLE.is_file() else ""
    parts = re.split(r"(?m)^(?=\[\[)", text)[1:]
    rows = [part for part in parts if not re.search(rf'(?m)^source = "({"|".join(OWN)})\b', part)]
    data = tomllib.loads("".join(rows))
    names, changed = (
        {name for row in data.get(key, []) for word in row["names"].split() for name in spelled(word)}
        for key in ("name", "changed")
    )
    return "".join(f"\n{row.rstrip()}\n" for row in rows), names, changed


def releases_of(library: Library, repositories: Repositories) -> dict[Version, Release]:
    """Return the names of each release of a library, oldest first."""
    tags = {name: repositories.tags(name) for name, _ in library.places}
    found: dict[Version, Release] = {}
    for version in sorted(set().union(*tags.values())):
        places = [(name, tags[name][version], under) for name, under in library.places if version in tags[name]]
        found[version] = read(library, [text for place in places for text in repositories.texts(*place)])
    return found


def changed_rows(library: str, found: Mapping[Version, set[str]], known: set[str]) -> Iterator[str]:
    """Yield a row for each release that changed functions, without those that a row by hand knows."""
    for version, changed in sorted(found.items()):
        if version >= CHANGES_SINCE and (names := changed - known):
            yield f'\n[[changed]]\nlibrary = "{library}"\nrelease = "{version}"\n{lines("names", squeezed(names))}'
            yield 'confirmed = true\nsource = "TAGS, HIPIFY"'


def cuda_rows(hipify: Hipify, every: set[str]) -> Iterator[str]:
    """Yield a row for each library of CUDA."""
    for library, (_, prefix, becomes) in CUDA.items():
        pairs = [f"{name}={hip}" for name, hip in hipify.renamed.get(library, {}).items()]
        yield f'\n[[cuda]]\nlibrary = "{library}"\nprefix = "{prefix}"\nbecomes = "{becomes}"'
        yield lines("renamed", pairs)
        yield lines("alone", squeezed(hipify.alone.get(library, set()) - every))
        yield 'confirmed = true\nsource = "HIPIFY"'


def main() -> None:
    """Write the table."""
    repositories = Repositories(Path(sys.argv[1]))
    hipify = read_hipify(repositories)
    by_hand, known, known_changes = kept()
    newest, texts = newest_headers()
    rows: list[str] = []
    every = set(known)
    for library in LIBRARIES:
        releases = releases_of(library, repositories)
        whole = list(releases)[-1]
        if not library.header:
            releases[Version(newest)] = read(library, texts)
        found = histories(releases, hipify.since, whole, OLDEST_OTHER if library.header else OLDEST)
        every |= found.keys()
        few = library.name == "rocSPARSE"  # seldom called: the names of every release are not worth their place
        found = {name: one for name, one in found.items() if name not in known and (one.since or one.gone or not few)}
        rows += name_rows(library.name, found, "TAGS")
        rows += changed_rows(library.name, changes(releases, hipify.changed), known_changes)
    rows += cuda_rows(hipify, every)
    revision = repositories.git("HIPIFY", "log", "-1", "--format=%h").strip()
    words = {"repositories": ",".join(sorted({name for one in LIBRARIES for name, _ in one.places})), "newest": newest}
    sources = "\n".join(f'{key} = "{text.format(**words, hipify=revision)}"' for key, text in SOURCES.items())
    print(HEAD.format(day=dt.datetime.now(tz=dt.UTC).date(), sources=sources), *rows, by_hand, sep="\n", end="")


if __name__ == "__main__":
    main()
