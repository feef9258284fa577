from pathlib import Path

from tenv.core.versions import Version
from tenv.host.compat import kind_of, parse_name, probe
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.loader import Library, Loader, parse_cache
from tenv.host.report import Compat, LibcudaKind
from tests.host.builders import places, program, put, text
from tests.support.each import each

DRIVER = Fact(Version("535.183.01"), "NVML", OriginKind.NVML)
NOWHERE = Missing("the loader finds no libx.so.1", ReasonKind.NONE)
LOADER, COMPAT = OriginKind.LOADER, LibcudaKind.CUDA_COMPAT


def loader(root: Path, machine: str = "x86_64", **environ: str) -> Loader:
    return Loader(places(root, machine=machine, variables=environ))


def elf(path: Path, number: int = 62, bits: int = 2) -> Path:
    """The head of a library, hand-made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF" + bytes([bits, 1]) + bytes(12) + number.to_bytes(2, "little") + bytes(44))
    return path


def cache(root: Path, *lines: str) -> None:
    rows = "\n".join(f"\t{line}" for line in lines)
    program(root / "sbin/ldconfig", f"cat <<'END'\n{len(lines)} libs found in cache\n{rows}\nEND")


def cuda(root: Path, folder: str, version: str) -> Path:
    """A libcuda with its link, as packages install it."""
    real = elf(root / folder / f"libcuda.so.{version}")
    real.with_name("libcuda.so.1").symlink_to(real.name)
    return real


def test_the_cache_of_one_family() -> None:
    found = parse_cache(text("ldconfig.txt"), "x86_64")
    assert found["libstdc++.so.6"] == ("/lib/x86_64-linux-gnu/libstdc++.so.6",)
    assert found["libcudart.so.13"] == ("/usr/local/cuda-13.0/lib/libcudart.so.13",)
    assert "libstdc++.so.6" not in parse_cache(text("ldconfig.txt"), "aarch64")


def test_attributes_of_the_cache() -> None:
    line = "\tlibc.so.6 (libc6,AArch64, OS ABI: Linux 3.7.0) => /lib/aarch64-linux-gnu/libc.so.6\n"
    assert parse_cache(line, "aarch64") == {"libc.so.6": ("/lib/aarch64-linux-gnu/libc.so.6",)}


def test_the_order_of_the_loader(tmp_path: Path) -> None:
    elf(tmp_path / "usr/lib64/libx.so.1")
    assert loader(tmp_path).find("libx.so.1") == Library(tmp_path / "usr/lib64/libx.so.1", "/usr/lib64", known=True)
    elf(tmp_path / "opt/libx.so.1")
    cache(tmp_path, "libx.so.1 (libc6,x86-64) => /opt/libx.so.1")
    assert loader(tmp_path).find("libx.so.1") == Library(tmp_path / "opt/libx.so.1", "ldconfig -p", known=True)
    elf(tmp_path / "mine/libx.so.1")
    found = loader(tmp_path, LD_LIBRARY_PATH=f"/nowhere::{tmp_path}/mine").find("libx.so.1")
    assert found == Library(tmp_path / "mine/libx.so.1", "LD_LIBRARY_PATH", known=True)


def test_libraries_of_another_processor_are_skipped(tmp_path: Path) -> None:
    elf(tmp_path / "a/libx.so.1", bits=1)
    elf(tmp_path / "b/libx.so.1", number=183)
    paths = f"{tmp_path}/a:{tmp_path}/b"
    assert loader(tmp_path, LD_LIBRARY_PATH=paths).find("libx.so.1") == NOWHERE
    assert isinstance(loader(tmp_path, "aarch64", LD_LIBRARY_PATH=paths).find("libx.so.1"), Library)


@each("script", ["exit 1", "echo nonsense", r"printf '\377\000'"])
def test_a_cache_that_can_not_be_read_is_empty(tmp_path: Path, script: str) -> None:
    program(tmp_path / "sbin/ldconfig", script)
    assert loader(tmp_path).cache == {}


def test_the_driver_s_own_is_no_compat(tmp_path: Path) -> None:
    real = cuda(tmp_path, "usr/lib/x86_64-linux-gnu", "535.183.01")
    assert probe(loader(tmp_path), DRIVER) == Missing(f"{real} is the driver's own", ReasonKind.DRIVERS_OWN)


@each("folder", ["usr/local/cuda-12.8/compat", "opt/env/cuda-compat"])
def test_compat_on_the_path(tmp_path: Path, folder: str) -> None:
    cuda(tmp_path, "usr/lib64", "535.183.01")
    real = cuda(tmp_path, folder, "570.86.10")
    found = probe(loader(tmp_path, LD_LIBRARY_PATH=str(tmp_path / folder)), DRIVER)
    assert found == Fact(Compat(str(real), Version("570.86.10"), COMPAT), "LD_LIBRARY_PATH", LOADER)


def test_compat_in_the_cache_and_no_driver(tmp_path: Path) -> None:
    real = cuda(tmp_path, "usr/local/cuda/compat", "570.86.10")
    cache(tmp_path, "libcuda.so.1 (libc6,x86-64) => /usr/local/cuda/compat/libcuda.so.1")
    found = probe(loader(tmp_path), Missing("none"))
    assert found == Fact(Compat(str(real), Version("570.86.10"), COMPAT), "ldconfig -p", LOADER)


def test_compat_without_its_number_goes_by_its_neighbours(tmp_path: Path) -> None:
    real = elf(tmp_path / "opt/compat/libcuda.so.1")
    environ = {"LD_LIBRARY_PATH": str(real.parent)}
    assert probe(Loader(places(tmp_path, variables=environ)), DRIVER) == Missing(
        f"{real} belongs to cuda-compat, but no file next to it has its version", ReasonKind.UNREADABLE
    )
    put(real.with_name("libnvidia-ptxjitcompiler.so.570.86.10"))
    assert probe(Loader(places(tmp_path, variables=environ)), DRIVER) == Fact(
        Compat(str(real), Version("570.86.10"), COMPAT), "LD_LIBRARY_PATH", LOADER
    )


def test_a_library_of_another_driver(tmp_path: Path) -> None:
    real = cuda(tmp_path, "usr/lib64", "570.124.06")
    found = probe(loader(tmp_path), DRIVER)
    origin = "/usr/lib64; the kernel driver is 535.183.01"
    assert found == Fact(Compat(str(real), Version("570.124.06"), LibcudaKind.OTHER), origin, LOADER)


def test_under_wsl_numbers_differ_anyway(tmp_path: Path) -> None:
    put(tmp_path / "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    cuda(tmp_path, "usr/lib/wsl/lib", "570.124.06")
    assert isinstance(probe(loader(tmp_path), DRIVER), Missing)


def test_names() -> None:
    assert str(parse_name("libcuda.so.550.54.15")) == "550.54.15"
    assert parse_name("libcuda.so.1") is None
    assert parse_name("libcuda.so.1.1") is None


@each(
    "path, kind",
    [
        ("/usr/local/cuda-12.8/compat/libcuda.so.1", LibcudaKind.CUDA_COMPAT),
        ("/usr/lib/wsl/lib/libcuda.so.1", LibcudaKind.WSL),
        ("/usr/lib/compat-of-mine/libcuda.so.1", LibcudaKind.OTHER),
        ("/usr/lib64/compat", LibcudaKind.OTHER),
    ],
)
def test_a_library_is_what_its_folder_says(path: str, kind: LibcudaKind) -> None:
    assert kind_of(path) is kind
