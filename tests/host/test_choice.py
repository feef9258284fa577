from tenv.core.versions import Range, Version
from tenv.host.choice import choose_gcc, choose_toolkit, fitting_gcc
from tenv.host.report import Compiler, ProblemKind, Toolkit, ToolkitProblem
from tests.support.each import each
from tests.support.found_by import led

WHOLE = (("cuda_cudart", "12"), ("cuda_nvcc", "12"))


def toolkit(path: str, version: str, *found_by: str, problem: ToolkitProblem | None = None) -> Toolkit:
    return Toolkit(path, led(*(found_by or (path,))), Version(version), WHOLE, (problem,) if problem else ())


def gcc(version: str, path: str, kind: str = "g++", found_by: str = "", *, default: bool = False) -> Compiler:
    return Compiler(kind, path, Version(version), default, led(*(found_by or f"{path} on PATH").split("; ")))


def both(version: str, suffix: str, found_by: str = "", *, default: bool = False) -> list[Compiler]:
    return [
        gcc(version, f"/usr/bin/g++{suffix}", "g++", found_by, default=default),
        gcc(version, f"/usr/bin/gcc{suffix}", "gcc", found_by, default=default),
    ]


OLD, DEFAULT, NEW = (
    toolkit("/usr/local/cuda-12.1", "12.1.1"),
    toolkit("/usr/local/cuda-12.4", "12.4", "nvcc on PATH", "/usr/local/cuda", "/usr/local/cuda-12.4"),
    toolkit("/usr/local/cuda-13.0", "13.0"),
)


@each(
    "accepted, kept, taken",
    [
        ("*", "", DEFAULT),
        ("12.1.*", "", OLD),
        ("12.1", "", OLD),
        ("==12.1", "", OLD),
        (">=12.1.1,<12.2", "", OLD),
        (">=12.5", "", NEW),
        ("<12.1.1", "", None),
        ("*", "/usr/local/cuda-12.1", OLD),
        ("*", "/gone", DEFAULT),
        ("11.8.*", "", None),
    ],
)
def test_the_best_toolkit_that_fits(accepted: str, kept: str, taken: Toolkit | None) -> None:
    assert choose_toolkit((OLD, DEFAULT, NEW), Range(accepted), kept).taken == taken


def test_what_a_variable_names_comes_first() -> None:
    named = toolkit("/apps/cuda", "12.2", "EBROOTCUDA")
    assert choose_toolkit((DEFAULT, named, NEW), Range("*"), kept=NEW.path).taken == named
    assert choose_toolkit((DEFAULT, named, NEW), Range("13.*")).taken == NEW


@each(
    "default, others, taken",
    [
        ("12.2", ("9.4", "11.4"), ""),
        ("14.2", ("9.4", "11.4"), "11.4"),
        ("14.2", ("15.1",), ""),
        ("5.4", ("11.4",), "11.4"),
    ],
)
def test_another_gcc_is_taken_only_where_the_default_one_does_not_fit(
    default: str, others: tuple[str, ...], taken: str
) -> None:
    found = [*both(default, "", default=True), *(one for version in others for one in both(version, f"-{version}"))]
    pair = fitting_gcc(found, 6, 13)
    assert (str(pair.version) if pair else "") == taken


def test_each_toolkit_that_falls_out_has_its_reason() -> None:
    no_nvcc = ToolkitProblem(ProblemKind.NO_NVCC, "it has no bin/nvcc")
    headers = ToolkitProblem(ProblemKind.HEADERS, "the headers are from 12.3, nvcc is from 12.1")
    bare = Toolkit("/b", led("/b"), Version("12.1"), (), (no_nvcc,), compiles=False)
    mixed = toolkit("/m", "12.1", problem=headers)
    no_runtime = Toolkit("/r", led("/r"), Version("12.1"), (("cuda_nvcc", "12.1.105"),))
    unknown = Toolkit("/u", led("/u"), None)
    refused = choose_toolkit((bare, mixed, no_runtime, unknown, NEW), Range("12.1.*")).refused
    assert refused == (
        "/b: it has no bin/nvcc",
        "/m: the headers are from 12.3, nvcc is from 12.1",
        "/r: it has no libcudart",
        "/u: its version is unknown",
        "/usr/local/cuda-13.0: 13.0 is not 12.1.*",
    )


def test_a_description_that_differs_keeps_no_toolkit_out() -> None:
    problem = ToolkitProblem(ProblemKind.RELEASE, "version.json has 11.8.0, nvcc has 12.1")
    odd = toolkit("/o", "12.1", problem=problem)
    assert choose_toolkit((odd,), Range("12.1.*")).taken == odd


def test_the_best_gcc_that_fits() -> None:
    compilers = [*both("12.2.0", "", default=True), *both("11.3.0", "-11"), *both("9.5.0", "-9")]

    def taken(accepted: str, most: int | None = None, kept: str = "") -> str:
        pair = choose_gcc(compilers, Range(accepted), most, kept).taken
        return str(pair.version) if pair else ""

    assert taken(">=9.4") == "12.2.0"
    assert taken(">=9.4", most=11) == "11.3.0"
    assert taken("<11") == "9.5.0"
    assert taken(">=9.4", kept="/usr/bin/g++-9") == "9.5.0"
    assert taken(">=13") == ""


def test_the_compiler_that_cxx_names_comes_first() -> None:
    compilers = [*both("12.2.0", "", default=True), *both("11.3.0", "-11", "CXX; g++-11 on PATH")]
    pair = choose_gcc(compilers, Range("*")).taken
    assert pair is not None
    assert (pair.gcc, pair.gxx) == ("/usr/bin/gcc-11", "/usr/bin/g++-11")


def test_each_gcc_that_falls_out_has_its_reason() -> None:
    compilers = [
        *both("13.2.0", "-13"),
        *both("8.4.0", "-8"),
        gcc("11.3.0", "/g++-11"),
        gcc("10.2.0", "/gcc-10", "gcc"),
    ]
    assert choose_gcc(compilers, Range(">=9.4"), most=12).refused == (
        "/usr/bin/g++-13: 13.2.0 is newer than the selected nvcc accepts (GCC 12 at most)",
        "/usr/bin/g++-8: 8.4.0 is not >=9.4",
        "/g++-11: it has no matching gcc 11.3.0",
        "/gcc-10: it has no matching g++ 10.2.0",
    )
