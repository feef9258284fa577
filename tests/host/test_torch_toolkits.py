"""The toolkit that torch's helper takes and the one that CMake takes, each in the order of its own code."""

from pathlib import Path

from tenv.host.places import Places
from tenv.host.torch_toolkits import TakenToolkit, taken_toolkits
from tests.host.builders import program, put
from tests.support.each import each


def toolkit(folder: Path, release: str, *, headers: bool = True) -> Path:
    """Write a toolkit; return its folder."""
    program(folder / "bin/nvcc", f'echo "Cuda compilation tools, release {release}, V{release}.88"')
    if headers:
        for name in ("cuda_runtime_api.h", "cusparse.h", "cublas_v2.h", "cublasLt.h", "cusolverDn.h"):
            put(folder / "include" / name)
    return folder


def taken(root: Path, path: str = "", **environ: str) -> tuple[TakenToolkit, TakenToolkit]:
    torch, cmake = taken_toolkits(Places(root, path=path, environ=environ))
    return torch, cmake


def test_torch_takes_cuda_home_and_cmake_does_not(tmp_path: Path) -> None:
    home, other = toolkit(tmp_path / "a", "12.8"), toolkit(tmp_path / "b", "13.0")
    torch, cmake = taken(tmp_path, f"{other}/bin", CUDA_HOME=str(home))
    assert (torch.folder, torch.way, str(torch.version)) == (str(home), "CUDA_HOME", "12.8")
    assert (cmake.folder, cmake.way, str(cmake.version)) == (str(other), "nvcc on PATH", "13.0")


@each(
    "environ, way",
    [
        ({"CUDA_HOME": "", "CUDA_PATH": "ROOT/a"}, "CUDA_PATH"),
        ({"CUDA_HOME": ""}, "nvcc on PATH"),
        ({"CUDA_HOME": "ROOT/a", "CUDA_PATH": "ROOT/b"}, "CUDA_HOME"),
    ],
)
def test_an_empty_cuda_home_counts_as_none(tmp_path: Path, environ: dict[str, str], way: str) -> None:
    toolkit(tmp_path / "a", "12.8")
    toolkit(tmp_path / "b", "13.0")
    torch, _ = taken(tmp_path, f"{tmp_path}/b/bin", **{k: v.replace("ROOT", str(tmp_path)) for k, v in environ.items()})
    assert torch.way == way


def test_an_empty_cuda_path_ends_the_search(tmp_path: Path) -> None:
    """``os.environ.get('CUDA_HOME') or os.environ.get('CUDA_PATH')`` is an empty text then, and no None."""
    folder = toolkit(tmp_path / "usr/local/cuda", "12.8")
    torch, cmake = taken(tmp_path, f"{folder}/bin", CUDA_PATH="")
    assert torch.folder == ""
    assert cmake.folder == str(folder)


def test_a_script_on_path_makes_its_own_folder_the_toolkit(tmp_path: Path) -> None:
    real = toolkit(tmp_path / "usr/local/cuda-13.0", "13.0")
    program(tmp_path / "usr/local/bin/nvcc", f'exec "{real}/bin/nvcc" "$@"')
    torch, _ = taken(tmp_path, f"{tmp_path}/usr/local/bin")
    assert (torch.folder, str(torch.version)) == (str(tmp_path / "usr/local"), "13.0")
    assert torch.absent[:2] == ("cuda_runtime_api.h", "cusparse.h")


def test_headers_of_a_toolkit_in_targets_count(tmp_path: Path) -> None:
    folder = toolkit(tmp_path / "a", "12.8")
    (folder / "include/cusparse.h").rename(put(folder / "targets/x86_64-linux/include/cusparse.h"))
    (folder / "include/cublasLt.h").unlink()
    torch, _ = taken(tmp_path, CUDA_HOME=str(folder))
    assert torch.absent == ("cublasLt.h",)


def test_without_anything_the_default_folder_is_taken(tmp_path: Path) -> None:
    assert [one.folder for one in taken(tmp_path)] == ["", ""]
    folder = toolkit(tmp_path / "usr/local/cuda", "12.6")
    assert [(one.folder, one.way) for one in taken(tmp_path)] == [(str(folder), "the default folder")] * 2


def test_a_folder_without_nvcc_has_no_release(tmp_path: Path) -> None:
    put(tmp_path / "a/include/cuda_runtime.h")
    torch, _ = taken(tmp_path, CUDA_HOME=f"{tmp_path}/a")
    assert (torch.nvcc, torch.version) == ("", None)


def test_cudacxx_is_the_compiler_of_cmake_alone(tmp_path: Path) -> None:
    one, other = toolkit(tmp_path / "a", "12.8"), toolkit(tmp_path / "b", "13.0")
    torch, cmake = taken(tmp_path, f"{one}/bin", CUDACXX=f"{other}/bin/nvcc -v")
    assert (str(torch.version), str(cmake.version)) == ("12.8", "13.0")
    assert (cmake.folder, cmake.way) == (str(one), "nvcc on PATH, its nvcc by CUDACXX")
