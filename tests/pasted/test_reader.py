"""The reader of pasted reports: each field as it was written by hand, the trust between layouts, and no traceback."""

import codecs
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.errors import HostReportError
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.pasted import clean_text
from tenv.host.pasted.clean_text import MOST, decode
from tenv.host.pasted.reader import LAYOUTS, Pasted, read, to_json, to_report
from tenv.host.pasted.values import Item
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, parse
from tenv.host.report_json import to_json as written
from tests.support.each import each

FOLDER = Path(__file__).parent
TEXTS = sorted(FOLDER.glob("*.txt"))
ABOUT_THE_TEXT = {"source", "date", "layout", "missing"}


def expected(text: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text.with_suffix(".expected.json").read_text(encoding="utf-8"))
    return loaded


def report(text: str) -> HostReport:
    return to_report(read(text))


def value(answer: Fact[Any] | Missing) -> Any:
    return answer.value if isinstance(answer, Fact) else None


@each("text", TEXTS)
def test_every_field_is_read_as_it_was_written_by_hand(text: Path) -> None:
    fields, said = expected(text), to_json(read(text.read_text(encoding="utf-8")))
    assert {name: said[name].get("value") for name in fields if name not in ABOUT_THE_TEXT} == {
        name: answer for name, answer in fields.items() if name not in ABOUT_THE_TEXT
    }
    answers = {str(item): said[str(item)] for item in Item if item is not Item.OTHER}
    assert sorted(name for name, one in answers.items() if one["kind"] == ReasonKind.NOT_COLLECTED) == fields["missing"]
    assert said["contradictions"] == []


@each("text", TEXTS)
def test_every_origin_names_the_line_of_its_value(text: Path) -> None:
    pasted, lines = read(text.read_text(encoding="utf-8")), text.read_text(encoding="utf-8").split("\n")
    for item in (Item.DRIVER, Item.TOOLKIT, Item.GLIBC, Item.CMAKE, Item.PYTORCH):
        answer = pasted.answers[item]
        if isinstance(answer, Fact):
            number = int(answer.origin.split(",")[0].removeprefix("line "))
            assert answer.value in lines[number - 1]
            assert answer.kind is OriginKind.PASTED


@each("text", TEXTS)
def test_the_host_report_has_what_the_text_has_and_comes_back_from_json(text: Path) -> None:
    fields, host = expected(text), report(text.read_text(encoding="utf-8"))
    assert from_json(written(host)) == host
    assert str(value(host.driver) or "") == (fields["driver"] or "")
    assert str(value(host.cuda) or "") == (fields["cuda"] or "")
    assert str(value(host.libc) or "") == (fields["glibc"] or "")
    assert (value(host.wsl), value(host.platform)) == (fields["wsl"], fields["platform"])
    gpus = value(host.gpus) or ()
    assert [gpu.name for gpu in gpus] == [gpu["name"] for gpu in fields["gpus"] or ()]
    assert [gpu.mig for gpu in gpus] == [bool(gpu["mig"]) for gpu in fields["gpus"] or ()]
    toolkits = value(host.toolkits) or ()
    assert [dict(toolkit.components).get("cuda_nvcc", str(toolkit.version)) for toolkit in toolkits] == (
        [fields["toolkit"]] * len(toolkits)
    )
    assert bool(toolkits) is (fields["toolkit"] is not None)
    compilers = {compiler.kind: str(compiler.version) for compiler in value(host.compilers) or ()}
    assert (compilers.get("gcc"), compilers.get("clang")) == (fields["gcc"], fields["clang"])
    assert compilers.get("g++") == fields["gcc"]


COLLECT_ENV = """\
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
OS: Ubuntu 22.04.2 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version: glibc-2.35
Is CUDA available: True
CUDA runtime version: 12.4.131
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-40GB
Nvidia driver version: 550.54.15
"""
TABLE = """\
| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |
|   0  NVIDIA A100-SXM...          On  | 00000000:07:00.0 Off |                    0 |
| N/A   26C    P0              51W / 500W |     87MiB / 40960MiB |     0%      Default |
|                                         |                      |             Disabled |
"""
CONDA = " virtual packages : __cuda=12.4=0\n                    __glibc=2.31=0\n         platform : linux-64\n"
NVCC = "Cuda compilation tools, release 11.8, V11.8.89\n"
MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60.13  Wed Nov 30\n"

TRUST = [
    ((TABLE, COLLECT_ENV), Item.DRIVER, "535.104.05", "550.54.15"),
    ((MODULE, TABLE), Item.DRIVER, "525.60.13", "535.104.05"),
    ((TABLE, CONDA), Item.CUDA, "12.2", "12.4"),
    ((COLLECT_ENV, CONDA), Item.GLIBC, "2.35", "2.31"),
    ((NVCC, COLLECT_ENV), Item.TOOLKIT, "11.8.89", "12.4.131"),
]


@each("parts, item, taken, left", TRUST)
def test_of_two_places_the_more_trusted_counts_and_the_other_is_named(
    parts: tuple[str, str], item: Item, taken: str, left: str
) -> None:
    for order in (parts, parts[::-1]):
        pasted = read("\n\n".join(order))
        assert pasted.value(item) == taken
        (clash,) = (clash for clash in pasted.clashes if clash.item is item)
        assert (clash.taken.split(",")[0], clash.left.split(",")[0]) == (taken, left)


def test_of_two_texts_in_one_layout_the_first_counts() -> None:
    other = TABLE.replace("535.104.05", "470.82.01")
    assert read(TABLE + other).value(Item.DRIVER) == "535.104.05"
    assert read(other + TABLE).value(Item.DRIVER) == "470.82.01"
    assert [clash.left for clash in read(TABLE + other).clashes] == ["470.82.01, line 5, nvidia-smi"]


def test_a_cut_name_is_completed_by_another_list_of_the_same_gpus() -> None:
    (gpu,) = value(report(f"{COLLECT_ENV}\n{TABLE}").gpus)
    assert (gpu.name, gpu.memory, gpu.pci_address) == ("NVIDIA A100-SXM4-40GB", 40960 << 20, "0000:07:00.0")


def test_a_list_of_other_gpus_completes_nothing_and_is_named() -> None:
    pasted = read(f"{TABLE}\n{COLLECT_ENV.replace('A100-SXM4-40GB', 'H100 PCIe')}")
    assert [gpu.name for gpu in pasted.value(Item.GPUS)] == ["NVIDIA A100-SXM..."]
    assert [clash.item for clash in pasted.clashes if clash.item is Item.GPUS] == [Item.GPUS]


def marked(text: str) -> list[bytes]:
    windows = text.replace("\n", "\r\n")
    return [
        *(text.encode(), windows.encode(), codecs.BOM_UTF8 + text.encode()),
        *(codecs.BOM_UTF16_LE + windows.encode("utf-16-le"), codecs.BOM_UTF16_BE + windows.encode("utf-16-be")),
        windows.encode("utf-16-le"),
        text.replace("\n", "\r").encode(),
    ]


def test_every_encoding_and_end_of_line_reads_alike() -> None:
    found = [report(decode(raw)) for raw in marked(COLLECT_ENV)]
    assert [host for host in found if host != found[0]] == []


AROUND = [
    lambda line: f"> {line}",
    lambda line: f">> {line}",
    lambda line: f"    {line}",
    lambda line: f"\x1b[32m{line}\x1b[0m",
    lambda line: line.replace(":", "\uff1a").replace(" ", "\u00a0"),
    lambda line: f"&gt; {line}",
    lambda line: f"- **{line.replace(':', ':**', 1)}",
    lambda line: f"| {line.replace(':', ' |', 1)} |",
    lambda line: f"2024-08-01T10:00:00.1234567Z {line}",
    lambda line: f"[2024-08-01 10:00:00,123] {line}",
]


@each("mark", ["{:4d}  {}", "{}: {}", "{:>3} | {}"])
def test_the_line_numbers_of_a_viewer_do_not_count(mark: str) -> None:
    text = "\n".join(mark.format(number, line) for number, line in enumerate(COLLECT_ENV.splitlines(), 17))
    host = report(text)
    assert (str(value(host.driver)), str(value(host.libc))) == ("550.54.15", "2.35")
    assert [gpu.name for gpu in value(host.gpus)] == ["NVIDIA A100-SXM4-40GB"]


@each("around", AROUND)
def test_what_stands_around_lines_does_not_count(around: Any) -> None:
    text = "\n".join(map(around, COLLECT_ENV.splitlines()))
    host = report(text)
    assert (str(value(host.driver)), str(value(host.libc))) == ("550.54.15", "2.35")
    assert value(host.platform) == "linux-64"
    assert [gpu.name for gpu in value(host.gpus)] == ["NVIDIA A100-SXM4-40GB"]


def test_labels_that_a_forum_joined_are_read_apart() -> None:
    host = report(" ".join(COLLECT_ENV.splitlines()))
    assert (str(value(host.driver)), str(value(host.libc))) == ("550.54.15", "2.35")
    assert [gpu.name for gpu in value(host.gpus)] == ["NVIDIA A100-SXM4-40GB"]


NOTHING = [
    ("", "it is empty"),
    ("hello, it does not work", "it names no driver"),
    ("Python 3.11 is what I use, and it fails after 12.1 seconds", "it names no driver"),
    (
        "----------\nSystem Information\n----------\n Time of this report: 1/2/2024\n DirectX Version: 12",
        "dxdiag",
    ),
]


@each("text, said", NOTHING)
def test_a_text_that_describes_no_machine_is_refused(text: str, said: str) -> None:
    with pytest.raises(HostReportError, match=said):
        parse(text, "it.txt")


def test_the_prompt_of_a_shell_is_no_json() -> None:
    assert parse(f"[root@node ~]$ nvidia-smi\n{TABLE}", "it").pasted["driver"]["value"] == "535.104.05"


@each(
    "words, gcc",
    [
        ("(Ubuntu 9.3.0-17ubuntu1~20.04) 9.3.0", "9.3.0"),
        ("(GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)", "4.8.5"),
        ("(x86_64-posix-seh-rev0, Built by MinGW-W64 project (8.1)) 8.1.0", "8.1.0"),
        ("(conda-forge gcc 12.3.0-3) 12.3.0", "12.3.0"),
        ("13.2.1 20230801", "13.2.1"),
        ("gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)", None),
        ("Could not collect", None),
    ],
)
def test_the_version_of_a_compiler_stands_behind_its_maker(words: str, gcc: str | None) -> None:
    said = read(COLLECT_ENV.replace("(Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", words))
    assert said.value(Item.GCC) == gcc


PIP = """\
Package                  Version
------------------------ ------------
numpy                    2.1.2
nvidia-cublas-cu12       12.8.3.14
nvidia-cuda-runtime-cu12 12.8.57
torch                    2.7.0
"""
FREEZE = "numpy==2.1.2\nnvidia-cuda-runtime==13.0.88\ntorch==2.11.0\n"
CONDA_LIST = "# Name  Version  Build  Channel\ntorch  2.9.1+cu128  pypi_0  pypi\ntriton  3.5.1  pypi_0  pypi\n"
KERNEL = (
    "Jun 30 11:07:05 n kernel: NVRM: API mismatch: the client has the version 535.54.03, but#012NVRM: this kernel "
    "module has the version 530.30.02.\n"
)

TORCHES = [
    (PIP, Item.PYTORCH, "2.7.0"),
    (PIP, Item.PYTORCH_CUDA, "12.8"),
    (PIP, Item.WHEELS, "nvidia-cublas-cu12 12.8.3.14, nvidia-cuda-runtime-cu12 12.8.57"),
    (PIP.replace("2.7.0", "2.7.0+cu126"), Item.PYTORCH_CUDA, "12.6"),
    (PIP.replace("2.7.0", "2.7.0+cpu"), Item.PYTORCH_CUDA, None),
    (FREEZE, Item.PYTORCH_CUDA, "13.0"),
    (CONDA_LIST, Item.PYTORCH, "2.9.1+cu128"),
    ("torch==2.1.0 is what I have\nGCC version: 12.1", Item.PYTORCH, None),
    ("the list:\ntorch                    2.7.0\nGCC version: 12.1", Item.PYTORCH, None),
    (">>> import torch\n>>> torch.__version__\n'2.11.0+cu126'", Item.PYTORCH, "2.11.0+cu126"),
    ("$ python3 -c 'import torch; print(torch.version.cuda)'\n12.6", Item.PYTORCH_CUDA, "12.6"),
    ("In [2]: torch.cuda.is_available()\nOut[2]: False", Item.CUDA_AVAILABLE, False),
    ("I called torch.__version__ and read\n2.1.0\nglibc: 2.31", Item.PYTORCH, None),
    (KERNEL, Item.DRIVER, "530.30.02"),
]


@each("text, item, found", TORCHES)
def test_the_packages_the_prompt_and_the_kernel_are_read(text: str, item: Item, found: Any) -> None:
    assert read(text).value(item) == found


ENTRIES = [
    ("PyTorch Version (e.g., 1.0): 1.4.0", Item.PYTORCH, "1.4.0"),
    ("- OS (e.g., Linux): Ubuntu 18.04", Item.OS, "Ubuntu 18.04"),
    ("- PyTorch version (GPU?): 2.1.0+cu121 (True)", Item.CUDA_AVAILABLE, True),
    ("- PyTorch version (GPU?): 2.1.0+cu121 (True)", Item.PYTORCH_CUDA, "12.1"),
    ("- Platform: Windows-10-10.0.19045-SP0", Item.PLATFORM, "win-64"),
    ("- Platform: Linux-5.15.0-91-generic-x86_64-with-glibc2.35", Item.WSL, False),
    ("GPU: RTX 3080 Ti, driver version: 535.129.03", Item.DRIVER, "535.129.03"),
    ("NVIDIA driver: 11.4", Item.DRIVER, None),
    ("Driver: 4.1", Item.DRIVER, None),
    ("the release needs driver 525.60.13 or newer", Item.DRIVER, None),
    ("torch.cuda.is_available() returns False", Item.CUDA_AVAILABLE, False),
    ("I am on WSL2 with Debian 12", Item.WSL, True),
    ("I am not on WSL2 but on Debian 12", Item.WSL, None),
    ("  CUDA Driver Version / Runtime Version          12.9 / 12.6", Item.CUDA, "12.9"),
    ("CUDA/cuDNN version: 11.0 / 8.0", Item.TOOLKIT, None),
    ("glibc: 2.31", Item.GLIBC, "2.31"),
    ("ldd (Debian GLIBC 2.36-9+deb12u4) 2.36", Item.GLIBC, "2.36"),
    ("g++-12 (Debian 12.2.0-14) 12.2.0", Item.GCC, "12.2.0"),
    ("gcc version 13.2.1 20230801 (GCC)", Item.GCC, "13.2.1"),
    ("Ubuntu clang version 14.0.0-1ubuntu1.1", Item.CLANG, "14.0.0"),
    ("Linux node 5.15.153.1-microsoft-standard-WSL2 #1 SMP x86_64 GNU/Linux", Item.WSL, True),
]


@each("line, item, found", ENTRIES)
def test_a_line_alone_says_what_it_says(line: str, item: Item, found: Any) -> None:
    assert read(f"{line}\n\nplatform: x\nCUDA Version: 12.1\nglibc: 2.31").value(item) == found


NAMES = [
    ("GPU: 2 x GeForce RTX 3090", ["GeForce RTX 3090"] * 2),
    ("GPU: 4x Tesla V100", ["Tesla V100"] * 4),
    ("GPU type: A100 x 8", ["A100"] * 8),
    ("GPU: RTX 3090 (24 GB)", ["RTX 3090"]),
    ("GPU: AMD Radeon RX 7900", None),
    ("GPU: yes", None),
    ("GPU 0,1,2: Tesla T4", ["Tesla T4"] * 3),
    ("GPU 0: NVIDIA A10G GPU 1: NVIDIA A10G", ["NVIDIA A10G"] * 2),
    ("**GPU 0:** NVIDIA L4\n**GPU 1:** NVIDIA L4", ["NVIDIA L4"] * 2),
    ('Device 0: "Orin"\n  CUDA Capability Major/Minor version number:    8.7', ["Orin"]),
    (
        "name, driver_version, memory.total [MiB]\nTesla T4, 450.80.02, 15109 MiB\nTesla T4, 450.80.02, 15109 MiB",
        ["Tesla T4"] * 2,
    ),
    (
        "* CUDA:\n  - GPU:\n    - NVIDIA L4\n  - available: True\n  - version: 12.1\n* System:\n  - OS: Linux",
        ["NVIDIA L4"],
    ),
    (
        f"{TABLE}|   1  NVIDIA T400 4GB    WDDM | 00000000:08:00.0 On | N/A |\n",
        ["NVIDIA A100-SXM...", "NVIDIA T400 4GB"],
    ),
]


IDS = [
    ("01:00.0 VGA compatible controller: NVIDIA Corporation Device 2b85 (rev a1)", [("", "10de:2b85")]),
    (
        "3b:00.0 3D controller: NVIDIA Corporation GP107M [GeForce GTX 1050 Mobile] (rev ff)",
        [("GeForce GTX 1050 Mobile", "")],
    ),
    (
        "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GB202 [GeForce RTX 5090] [10de:2b85](rev a1)",
        [("GeForce RTX 5090", "10de:2b85")],
    ),
    (
        "0000:65:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 PCIe] [10de:2331]",
        [("H100 PCIe", "10de:2331")],
    ),
    ("01:00.0 VGA compatible controller [0300]: NVIDIA Corporation Device [10de:2b85] (rev a1)", [("", "10de:2b85")]),
    ("01:00.1 Audio device: NVIDIA Corporation GA102 High Definition Audio Controller (rev a1)", None),
    ("pci@0000:01:00.0  display        AD102 [GeForce RTX 4090]", [("GeForce RTX 4090", "")]),
    (
        "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)\nNVRM: installed in this system requires it.",
        [("", "10de:2b85")],
    ),
]


@each("text, gpus", IDS)
def test_gpus_on_the_bus_have_their_ids(text: str, gpus: list[tuple[str, str]] | None) -> None:
    found = report(f"{text}\n\nglibc: 2.31\n").gpus
    assert (value(found) and [(gpu.name, gpu.pci_id) for gpu in value(found)]) == gpus


@each("text, names", NAMES)
def test_gpus_of_every_layout(text: str, names: list[str] | None) -> None:
    gpus = read(f"{text}\n\nglibc: 2.31\n").value(Item.GPUS)
    assert (gpus and [gpu.name for gpu in gpus]) == names


def test_no_layout_stands_twice() -> None:
    assert len({layout.name for layout in LAYOUTS}) == len(LAYOUTS)


def is_harmless(text: str) -> bool:
    """Return whether a text is refused, or a layout of it is named."""
    pasted = harmless(text)
    return pasted is None or bool(pasted.layouts)


def harmless(text: str) -> Pasted | None:
    """Read a text that may be anything, and write what was read; only tenv's own refusal may come out."""
    try:
        pasted = read(text)
    except HostReportError:
        return None
    json.dumps(to_json(pasted))
    host = to_report(pasted)
    assert from_json(json.loads(json.dumps(written(host)))) == host
    return pasted


ALL_LINES = [line for text in TEXTS for line in text.read_text(encoding="utf-8").splitlines()]
WORDS = (
    "GPU 0:",
    "9" * 400,
    "N/A",
    "-1",
    "1.2.3.4.5.6.7.8",
    "\u0661\u0662.\u0663",
    "|",
    "(",
    "+cu1",
    "\x00",
    "\ud800",
    ":" * 50,
)


@given(st.integers())
def test_a_spoiled_text_never_ends_in_a_traceback(seed: int) -> None:
    rng = random.Random(seed)
    lines = rng.choices(ALL_LINES, k=rng.randint(1, 40))
    for _ in range(rng.randint(1, 30)):
        at = rng.randrange(len(lines))
        line = lines[at]
        place = rng.randint(0, len(line))
        lines[at] = rng.choice(
            (
                line[:place] + rng.choice(WORDS) + line[place:],
                line[:place],
                line[place:] + line,
                line.replace(":", "", 1),
                line + rng.choice(lines),
                "".join(rng.sample(line, len(line))),
            )
        )
    assert is_harmless("\n".join(lines))


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert is_harmless(text)


@given(st.binary(max_size=200), st.sampled_from(TEXTS), st.integers(0, 2000))
def test_any_bytes_within_a_text_are_read_or_refused(raw: bytes, text: Path, place: int) -> None:
    whole = text.read_bytes()
    assert is_harmless(decode(whole[:place] + raw + whole[place:]))


@each("line", [" " * 200_000, "GPU 0:" * 50_000, "|   0  " + "a " * 100_000, "(" * 100_000 + "\n" * 1000])
def test_a_line_without_end_takes_no_time_without_end(line: str) -> None:
    assert is_harmless(line)
    assert is_harmless(f"GCC version: {line}\nCUDA runtime version: {line}\nNvidia driver version: {line}")


def test_a_log_is_read_at_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST > 10_000
    monkeypatch.setattr(clean_text, "MOST", few := 2 * len(COLLECT_ENV))
    assert harmless("x\n" * few + COLLECT_ENV) is None
    found = harmless(COLLECT_ENV + "x\n" * few)
    assert found is not None
    assert Version(found.value(Item.DRIVER)) == Version("550.54.15")


@each(
    "lines",
    [
        "OS: Alpine Linux v3.19 (x86_64)\nLibc version: -",
        "OS: Alpine Linux v3.19 (x86_64)\nLibc version: N/A",
        "OS: Void Linux (x86_64)\nLibc version: musl-1.2.4",
        "Python platform: Linux-6.6.4-x86_64-with-musl1.2.4",
    ],
)
def test_a_machine_with_musl_has_no_glibc(lines: str) -> None:
    text = f"CUDA used to build PyTorch: 12.1\nIs debug build: False\n{lines}\nNvidia driver version: 535.104.05\n"
    libc = report(text).libc
    assert isinstance(libc, Missing)
    assert (libc.kind, "musl" in libc.reason) == (ReasonKind.NOT_GLIBC, True)


def test_the_musl_of_a_loader_or_a_list_is_no_glibc() -> None:
    for text in (
        "musl libc (x86_64)\nVersion 1.2.4\ngcc (Alpine 13.2.1) 13.2.1\n",
        "OS: Alpine Linux 3.19\nGCC: 13.2\n",
    ):
        libc = report(text).libc
        assert isinstance(libc, Missing)
        assert libc.kind is ReasonKind.NOT_GLIBC, text
