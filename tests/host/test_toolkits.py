from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tenv.host.interface import Missing
from tenv.host.places import Places
from tenv.host.report import ProblemKind, Toolkit, ToolkitProblem
from tenv.host.toolkit_ways import parse_dryrun
from tenv.host.toolkits import parse_nvcc, parse_version_json, probe
from tests.host.builders import places, program, put, text
from tests.support.each import each
from tests.support.found_by import led
from tests.support.machine_trees import make_debian, make_toolkit

GONE, UNPLACED = ProblemKind.GONE, ProblemKind.UNPLACED
NVCC = "Cuda compilation tools, release {0}, V{0}.{1}"


def nvcc(root: Path, version: str = "13.0", build: str = "88") -> Path:
    put(root / "bin/nvcc.profile", "TOP = ..\n")
    return program(root / "bin/nvcc", f"echo '{NVCC.format(version, build)}'")


def headers(root: Path, number: int) -> None:
    put(root / "include/cuda_runtime_api.h", f"/* Copyright */\n#define CUDART_VERSION  {number}\n")


def problems(*rows: tuple[ProblemKind, str]) -> tuple[ToolkitProblem, ...]:
    return tuple(ToolkitProblem(kind, said) for kind, said in rows)


def only(found: Places) -> Toolkit:
    (toolkit,) = probe(found).value
    return toolkit


def test_parse_nvcc() -> None:
    found = parse_nvcc(text("nvcc-version.txt"))
    assert found is not None
    assert (str(found.release), str(found.build)) == ("13.0", "13.0.88")
    assert parse_nvcc("nvcc fatal") is None


def test_parse_dryrun() -> None:
    assert parse_dryrun(text("nvcc-dryrun.txt")) == "/usr/local/cuda-13.0/bin/.."
    assert parse_dryrun("#$ _SPACE_= \n#$ _HERE_=/usr/lib/nvidia-cuda-toolkit/bin\n") == "/usr/lib/nvidia-cuda-toolkit"
    assert parse_dryrun("") is None


def test_parse_version_json() -> None:
    found = parse_version_json(text("version-11.8.json"))
    assert isinstance(found, dict)
    assert (found["cuda"], found["libcublas"]) == ("11.8.0", "11.11.3.6")


@each("garbage", ["", "[]", "1", '{"cuda": {}}', "{", "[" * 20_000])
def test_parse_version_json_garbage(garbage: str) -> None:
    assert isinstance(parse_version_json(garbage), Missing)


@given(st.text())
def test_parsers_never_raise(printed: str) -> None:
    assert parse_nvcc(printed) is None or "release" in printed
    assert parse_dryrun(printed) is None or "#$ " in printed
    assert isinstance(parse_version_json(printed), dict | Missing)


def test_none(tmp_path: Path) -> None:
    assert probe(places(tmp_path)).value == ()


def test_one_toolkit_by_all_its_ways(tmp_path: Path) -> None:
    root = tmp_path / "usr/local/cuda-13.0"
    nvcc(root)
    (tmp_path / "usr/local/cuda").symlink_to("cuda-13.0")
    found = only(places(tmp_path, CUDA_HOME=f"{tmp_path}/usr/local/cuda/", PATH=f"{tmp_path}/usr/local/cuda/bin"))
    assert found.absent, "an nvcc alone is no whole toolkit"
    assert replace(found, absent=None) == Toolkit(
        str(root),
        led("CUDA_HOME", "nvcc on PATH", "/usr/local/cuda", "/usr/local/cuda-13.0"),
        found.version,
        (("cuda_nvcc", "13.0.88"),),
        (),
    )
    assert str(found.version) == "13.0"


def test_an_nvcc_that_is_a_script(tmp_path: Path) -> None:
    """As Debian's is."""
    root = tmp_path / "usr/lib/nvidia-cuda-toolkit"
    nvcc(root, "12.4", "131")
    said = f"echo '#$ TOP={root}/bin/..' >&2"
    program(tmp_path / "bin/nvcc", f'[ "$1" = --dryrun ] && {said} || exec {root}/bin/nvcc "$@"')
    found = only(places(tmp_path))
    assert (found.path, found.found_by, str(found.version)) == (
        str(root),
        led("nvcc on PATH", "/usr/lib/nvidia-cuda-toolkit"),
        "12.4",
    )


@each(
    "script, asked",
    [
        ('#!/bin/sh\nexec {0} "$@"\n', False),
        ('#!/bin/bash\n# CUDA of this image\n\n exec "{0}" "$@"', False),
        ('#!/bin/sh\n[ -n "$NO" ] && exec /no/bin/nvcc "$@"\nexec {0} "$@"\n', True),
        ('#!/bin/sh\nexec {0} -ccbin g++ "$@"\n', True),
        ("#!/bin/sh\n" + "\n" * 400 + '{0} "$@"\n', True),  # a pattern that parts the lines in many ways never ends
    ],
)
def test_an_nvcc_that_only_starts_another_is_not_asked_for_its_toolkit(
    tmp_path: Path, script: str, asked: bool
) -> None:
    root, noted = tmp_path / "opt/cuda-12.4", tmp_path / "asked"
    nvcc(root, "12.4", "131")
    said = f"echo '{NVCC.format('12.4', '131')}'"
    words = f'[ "$1" != --dryrun ] || {{ : > {noted}; echo "#$ TOP={root}/bin/.." >&2; exit; }}; {said}'
    put(
        root / "bin/nvcc",
        f'#!/bin/sh\ncase "$*" in *--dryrun*) set -- --dryrun;; esac\n{words}\n',
    )
    put(tmp_path / "bin/nvcc", script.format(root / "bin/nvcc")).chmod(0o755)
    found = only(places(tmp_path))
    assert (found.path, str(found.version), noted.exists()) == (str(root), "12.4", asked)


def test_an_nvcc_that_does_not_tell(tmp_path: Path) -> None:
    path = program(tmp_path / "bin/nvcc", "echo oh; exit 1")
    told = f"nvcc on PATH does not name its toolkit: `{path} --dryrun` prints neither TOP nor _HERE_"
    assert only(places(tmp_path)) == Toolkit(str(path), led("nvcc on PATH"), None, (), problems((UNPLACED, told)))


def test_a_second_nvcc_on_path(tmp_path: Path) -> None:
    for name in ("a", "b"):
        nvcc(tmp_path / name, "12.4" if name == "a" else "12.1")
    found = probe(places(tmp_path, PATH=f"{tmp_path}/a/bin:{tmp_path}/b/bin:{tmp_path}/a/bin"))
    assert [(str(one.version), one.found_by) for one in found.value] == [
        ("12.4", led("nvcc on PATH")),
        ("12.1", led("nvcc on PATH, behind another")),
    ]


def test_a_link_that_points_nowhere(tmp_path: Path) -> None:
    (tmp_path / "usr/local").mkdir(parents=True)
    (tmp_path / "usr/local/cuda").symlink_to("cuda-12.1")
    target = f"{tmp_path}/usr/local/cuda-12.1"
    told = problems(
        (GONE, f"CUDA_HOME names {target}, which does not exist"),
        (GONE, f"/usr/local/cuda names {target}, which does not exist"),
    )
    found = only(places(tmp_path, CUDA_HOME=f"{tmp_path}/usr/local/cuda"))
    assert found == Toolkit(target, led("CUDA_HOME", "/usr/local/cuda"), None, (), told)


def test_a_link_that_points_to_itself(tmp_path: Path) -> None:
    (tmp_path / "usr/local").mkdir(parents=True)
    (tmp_path / "usr/local/cuda").symlink_to("cuda")
    assert only(places(tmp_path)).version is None


def test_what_only_has_the_name_is_none(tmp_path: Path) -> None:
    (tmp_path / "usr/local/cuda-12.1/compat").mkdir(parents=True)
    put(tmp_path / "usr/local/cuda.tar")
    assert probe(places(tmp_path)).value == ()


def test_version_json_that_disagrees_with_nvcc(tmp_path: Path) -> None:
    root = tmp_path / "usr/local/cuda"
    nvcc(root, "12.4", "131")
    put(root / "version.json", text("version-11.8.json"))
    put(root / "lib64/libcudart.so.12.4.127")
    put(root / "lib64/libcublas.so.11.11.3.6")
    headers(root, 12030)
    found = only(places(tmp_path))
    assert str(found.version) == "12.4"
    assert found.components == (
        ("cuda_cudart", "12.4.127"),
        ("cuda_nvcc", "12.4.131"),
        ("cuda_nvtx", "11.8.86"),
        ("libcublas", "11.11.3.6"),
    )
    assert found.problems == problems(
        (ProblemKind.RELEASE, "version.json has 11.8.0, nvcc has 12.4"),
        (ProblemKind.HEADERS, "the headers are from 12.3, nvcc is from 12.4"),
        (ProblemKind.COMPONENT, "version.json has 11.8.89 for cuda_cudart, which is 12.4.127"),
        (ProblemKind.COMPONENT, "version.json has 11.8.89 for cuda_nvcc, which is 12.4.131"),
    )


def test_a_toolkit_that_is_only_half_there(tmp_path: Path) -> None:
    root = tmp_path / "usr/local/cuda"
    put(root / "version.json", text("version-11.8.json"))
    put(root / "targets/x86_64-linux/lib/libcudart_static.a")
    found = only(places(tmp_path))
    assert str(found.version) == "11.8.0"
    assert dict(found.components) == {"cuda_cudart": "11.8.89", "cuda_nvcc": "11.8.89", "cuda_nvtx": "11.8.86"}
    assert found.problems == problems(
        (ProblemKind.NO_NVCC, "it has no bin/nvcc"),
        (ProblemKind.NO_LIBRARY, "version.json lists libcublas without a library"),
    )


def test_libraries_without_numbers_go_by_the_headers(tmp_path: Path) -> None:
    """As the libraries of wheels are."""
    root = tmp_path / "usr/local/cuda"
    nvcc(root)
    put(root / "lib/libcudart.so.13")
    headers(root, 13000)
    assert dict(only(places(tmp_path)).components) == {"cuda_cudart": "13.0", "cuda_nvcc": "13.0.88"}


def test_an_old_toolkit(tmp_path: Path) -> None:
    put(tmp_path / "usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n")
    assert str(only(places(tmp_path)).version) == "10.2.89"


def test_a_version_json_that_is_none(tmp_path: Path) -> None:
    nvcc(tmp_path / "usr/local/cuda")
    put(tmp_path / "usr/local/cuda/version.json", "{")
    problem = only(places(tmp_path)).problems[0]
    assert problem.kind is ProblemKind.DESCRIPTION
    assert problem.text.startswith("version.json can't be read: not JSON: ")


@each(
    "script, seconds, said",
    [
        ("exec sleep infinity", 0.3, "gave no answer within 0.3 s"),
        ("echo 'Segmentation fault'; exit 139", 30, "--version reports no release (exit status 139)"),
        ("echo 'no license' >&2; exit 1", 30, "--version reports no release (exit status 1: no license)"),
    ],
)
def test_an_nvcc_that_fails(tmp_path: Path, script: str, seconds: float, said: str) -> None:
    root = tmp_path / "usr/local/cuda"
    nvcc(root)
    program(root / "bin/nvcc", script)
    found = only(places(tmp_path, timeout=seconds))
    assert (found.version, found.problems[0].text.endswith(said)) == (None, True)
    assert found.problems[0].kind is ProblemKind.NVCC_FAILS


def test_cuda_home_that_is_no_toolkit(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = only(places(tmp_path, CUDA_HOME=str(tmp_path / "empty")))
    assert found.problems == problems((ProblemKind.NO_NVCC, "it has no bin/nvcc"))


def test_debian_keeps_nvcc_apart(tmp_path: Path) -> None:
    usr = make_debian(tmp_path, "11.8")
    found = only(places(tmp_path, PATH=str(usr / "bin")))
    assert (found.path, found.home) == (str(usr / "lib/nvidia-cuda-toolkit"), str(usr))
    assert found.found_by == led("nvcc on PATH", "/usr/lib/nvidia-cuda-toolkit")
    assert dict(found.components) == {"cuda_cudart": "11.8.89", "cuda_nvcc": "11.8.105"}
    assert (str(found.version), found.compiles, found.problems) == ("11.8", True, ())


@each("variable", ["CUDATOOLKIT_HOME", "EBROOTCUDA", "NVHPC_CUDA_HOME", "CUDA_PATH_V99_1"])
def test_environment_modules_name_toolkits(tmp_path: Path, variable: str) -> None:
    root = make_toolkit(tmp_path / "apps/cuda")
    found = only(places(tmp_path, variables={variable: str(root)}))
    assert (found.path, found.found_by, str(found.version)) == (str(root), led(variable), "99.1.1")


def test_a_loaded_module_is_named(tmp_path: Path) -> None:
    """As `module load CUDA/12.6` leaves the variables: the list of modules, and their files in the same order."""
    root, mine = make_toolkit(tmp_path / "apps/cuda"), make_toolkit(tmp_path / "home/cuda")
    texts = {
        "GCCcore/13": "set root /apps/gcc",
        "CUDA/12.6.lua": f'root = "{root}"',
        "mine/1": f'set root "{root}-old"',
    }
    for name, content in texts.items():
        (tmp_path / "modules" / name).parent.mkdir(parents=True)
        (tmp_path / "modules" / name).write_text(content)
    files = ":".join(f"/modules/{name}" for name in texts)
    loaded = {"LOADEDMODULES": "GCCcore/13:CUDA/12.6:mine/1", "_LMFILES_": files}
    unread = {"LOADEDMODULES": "CUDA/12.6", "_LMFILES_": ""}
    for variables, variable, folder, expected in (
        (loaded, "CUDA_HOME", root, "CUDA_HOME of module CUDA/12.6"),
        (loaded, "EBROOTCUDA", root, "EBROOTCUDA of module CUDA/12.6"),
        (loaded, "CUDA_ROOT", root, "CUDA_ROOT of module CUDA/12.6"),
        (unread, "EBROOTCUDA", root, "EBROOTCUDA of module CUDA/12.6"),
        (unread, "CUDA_HOME", root, "CUDA_HOME"),
        (loaded, "CUDA_HOME", mine, "CUDA_HOME"),
    ):
        found = only(places(tmp_path, variables={**variables, variable: str(folder)}))
        assert [lead.text for lead in found.found_by] == [expected], variable


@each("folder", ["opt/cuda", "opt/nvidia/cuda-99.1", "opt/nvidia/hpc_sdk/Linux_x86_64/25.1/cuda/99.1"])
def test_the_usual_folders_are_looked_at(tmp_path: Path, folder: str) -> None:
    root = make_toolkit(tmp_path / folder)
    found = only(places(tmp_path))
    assert (found.path, found.found_by) == (str(root), led(f"/{folder}"))


def test_the_hpc_sdk_has_its_toolkits_deeper(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "apps/nvhpc/Linux_x86_64/25.1/cuda/99.1")
    assert only(places(tmp_path, NVHPC=str(tmp_path / "apps/nvhpc"))).found_by == led("NVHPC")
    assert root.is_dir()


def test_alternatives_lead_to_toolkits(tmp_path: Path) -> None:
    make_toolkit(tmp_path / "apps/cuda")
    (tmp_path / "etc/alternatives").mkdir(parents=True)
    (tmp_path / "etc/alternatives/cuda").symlink_to(tmp_path / "apps/cuda")
    assert only(places(tmp_path)).found_by == led("/etc/alternatives/cuda")


def test_two_descriptions_that_differ(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda", described="98.0.1")
    put(root / "targets/x86_64-linux/version.json", '{"cuda": {"version": "99.1.1"}}')
    found = only(places(tmp_path))
    assert str(found.version) == "99.1.1"
    told = (
        "it has several descriptions that differ: version.json has 98.0.1, targets/x86_64-linux/version.json has 99.1.1"
    )
    assert found.problems == problems((ProblemKind.DESCRIPTIONS, told))


def test_a_description_that_leads_nowhere(tmp_path: Path) -> None:
    root = make_toolkit(tmp_path / "usr/local/cuda")
    (root / "version.json").unlink()
    (root / "version.json").symlink_to("/etc/alternatives/gone")
    found = only(places(tmp_path))
    told = (ProblemKind.DESCRIPTION, "version.json can't be read: No such file or directory")
    assert (str(found.version), found.problems) == ("99.1", problems(told))
