from pathlib import Path

import pytest

from tenv.core.versions import Version
from tenv.host import nvidia
from tenv.host.driver import is_wsl, parse_proc, parse_sys, parse_tegra
from tenv.host.driver import probe as probe_with
from tenv.host.interface import Fact, Missing, OriginKind
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places
from tests.host import builders
from tests.host.builders import HOSTS, needs_compiler, nvml, places, program, put, reason
from tests.support.each import each


def probe(places: Places) -> Fact[Version] | Missing:
    return probe_with(Nvidia(places))


NO_LIBRARY = "libtenv-has-no-such-library.so.1"


def text(name: str) -> str:
    return builders.text(f"{name}.txt")


def smi(root: Path, script: str, folder: str = "bin") -> Path:
    return program(root / folder / "nvidia-smi", script)


def parse_smi(recorded: str) -> Version | Missing:
    return nvidia.parse_smi(recorded, ("driver_version",)).driver


@each("name, version", [("proc-closed", "535.183.01"), ("proc-open", "580.65.06"), ("proc-open-aarch64", "550.54.15")])
def test_parse_proc(name: str, version: str) -> None:
    assert str(parse_proc(text(name))) == version


@each("recorded", [text("proc-unnumbered"), "GCC version:  gcc version 13.3.0\n", "", "Module"])
def test_parse_proc_takes_no_other_number(recorded: str) -> None:
    assert isinstance(parse_proc(recorded), Missing)


def test_parse_sys() -> None:
    assert str(parse_sys(text("sys"))) == "570.133.20"


@each("recorded", ["", "\n", "unknown\n", "570\n", "570.133.20-dirty\n", "9" * 5000 + ".1"])
def test_parse_sys_garbage(recorded: str) -> None:
    assert isinstance(parse_sys(recorded), Missing)


@each("name, version", [("smi-four-gpus", "550.54.15"), ("smi-wsl", "537.58"), ("smi-one-lost-gpu", "535.183.01")])
def test_parse_smi(name: str, version: str) -> None:
    assert str(parse_smi(text(name))) == version


@each(
    "name, said",
    [
        ("smi-wsl-error", "no driver version in `ERR!`"),
        ("smi-mismatch", "no driver version in `Failed to initialize NVML: Driver/library version mismatch`"),
        ("smi-no-devices", "no driver version in `No devices were found`"),
    ],
)
def test_parse_smi_errors(name: str, said: str) -> None:
    assert reason(parse_smi(text(name))) == said


def test_a_long_error_is_cut() -> None:
    said = reason(parse_smi(text("smi-no-driver")))
    assert said.startswith("no driver version in `NVIDIA-SMI has failed because it couldn't communicate")
    assert said.endswith("…`")


def test_nothing_there(tmp_path: Path) -> None:
    said = reason(probe(places(tmp_path)))
    assert said.startswith(f"NVML: the loader finds no {NO_LIBRARY}; ")
    for part in (
        "; nvidia-smi: not found on PATH; ",
        "/sys/module/nvidia/version: No such file or directory; ",
        "/proc/driver/nvidia/version: No such file or directory",
    ):
        assert part in said


def test_nothing_there_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr("tenv.core.process.run", refuse)
    assert isinstance(probe(places(tmp_path)), Missing)


def test_this_machine_gives_an_answer() -> None:
    assert isinstance(probe(Places()), Fact | Missing)


@each(
    "path, recorded, version",
    [
        ("sys/module/nvidia/version", "sys", "570.133.20"),
        ("proc/driver/nvidia/version", "proc-closed", "535.183.01"),
        ("proc/driver/nvidia/version", "proc-open", "580.65.06"),
    ],
)
def test_files(tmp_path: Path, path: str, recorded: str, version: str) -> None:
    put(tmp_path / path, text(recorded))
    assert probe(places(tmp_path)) == Fact(Version(version), f"/{path}", OriginKind.KERNEL)


def test_sys_is_asked_before_proc(tmp_path: Path) -> None:
    put(tmp_path / "sys/module/nvidia/version", text("sys"))
    put(tmp_path / "proc/driver/nvidia/version", text("proc-closed"))
    assert probe(places(tmp_path)) == Fact(Version("570.133.20"), "/sys/module/nvidia/version", OriginKind.KERNEL)


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "sys/module/nvidia/version").mkdir(parents=True)
    assert "/sys/module/nvidia/version: is not a regular file" in reason(probe(places(tmp_path)))


def test_smi_is_asked_before_the_files(tmp_path: Path) -> None:
    put(tmp_path / "sys/module/nvidia/version", text("sys"))
    smi(tmp_path, "echo '570.133.20, NVIDIA L4, 23034, 00000000:01:00.0, 0x27B810DE, 8.9, [N/A]'")
    assert probe(places(tmp_path)) == Fact(Version("570.133.20"), "nvidia-smi", OriginKind.NVIDIA_SMI)


def test_the_loaded_module_wins_over_an_smi_of_another_driver(tmp_path: Path) -> None:
    put(tmp_path / "sys/module/nvidia/version", text("sys"))
    smi(tmp_path, f"cat '{HOSTS}/query-laptop.csv'")
    origin = "/sys/module/nvidia/version; nvidia-smi reports 550.54.15"
    assert probe(places(tmp_path)) == Fact(Version("570.133.20"), origin, OriginKind.KERNEL)


def test_smi_is_asked_once_for_everything(tmp_path: Path) -> None:
    asked = "driver_version,name,memory.total,pci.bus_id,pci.device_id,compute_cap,mig.mode.current"
    smi(
        tmp_path,
        f"echo asked >> '{tmp_path}/log'\n"
        f'[ "$*" = "--query-gpu={asked} --format=csv,noheader,nounits" ] && cat \'{HOSTS}/query-laptop.csv\'',
    )
    assert probe(places(tmp_path)) == Fact(Version("550.54.15"), "nvidia-smi", OriginKind.NVIDIA_SMI)
    assert (tmp_path / "log").read_text() == "asked\n"


def test_smi_of_wsl_is_found_off_path(tmp_path: Path) -> None:
    row = "537.58, NVIDIA GeForce RTX 3080, 10240, 00000000:01:00.0, 0x220610DE, 8.6, [N/A]"
    smi(tmp_path, f"echo '{row}'", "usr/lib/wsl/lib")
    assert probe(places(tmp_path)) == Fact(Version("537.58"), "nvidia-smi", OriginKind.NVIDIA_SMI)


def test_a_failed_smi_leaves_it_to_the_files(tmp_path: Path) -> None:
    put(tmp_path / "sys/module/nvidia/version", text("sys"))
    smi(tmp_path, f"cat '{HOSTS}/smi-mismatch.txt'; exit 18")
    assert probe(places(tmp_path)) == Fact(Version("570.133.20"), "/sys/module/nvidia/version", OriginKind.KERNEL)


@each(
    "script, said",
    [
        ("echo ERR!", "nvidia-smi: no driver version in `ERR!`;"),
        ("echo 'No devices were found'; exit 6", "no driver version in `No devices were found` (exit status 6);"),
        ("echo 'no such library' >&2; exit 127", "no driver version in `no such library` (exit status 127);"),
        ("exit 9", "nvidia-smi: empty answer (exit status 9);"),
        (r"printf '\377\376\000'", "nvidia-smi: no driver version in `"),
        (r"printf 'a\033[31mb'", "nvidia-smi: no driver version in `a\ufffd[31mb`"),
    ],
)
def test_smi_errors_are_told(tmp_path: Path, script: str, said: str) -> None:
    smi(tmp_path, script)
    assert said in reason(probe(places(tmp_path)))


def test_smi_that_can_not_be_started(tmp_path: Path) -> None:
    put(tmp_path / "bin/nvidia-smi", "not a program").chmod(0o755)
    assert "nvidia-smi can't be started: " in reason(probe(places(tmp_path)))


def test_smi_that_hangs(tmp_path: Path) -> None:
    put(tmp_path / "sys/module/nvidia/version", text("sys"))
    smi(tmp_path, "exec sleep infinity")
    assert probe(places(tmp_path, timeout=0.2)) == Fact(
        Version("570.133.20"), "/sys/module/nvidia/version", OriginKind.KERNEL
    )


@needs_compiler
def test_nvml_is_asked_first(tmp_path: Path) -> None:
    smi(tmp_path, f"cat '{HOSTS}/query-laptop.csv'")
    assert probe(places(tmp_path, library=nvml(tmp_path))) == Fact(Version("580.65.06"), "NVML", OriginKind.NVML)


@needs_compiler
def test_nvml_of_wsl_is_found_off_the_loaders_path(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/wsl/lib"
    folder.mkdir(parents=True)
    nvml(folder, driver="537.58")
    found = probe(places(tmp_path, library="libnvidia-ml.so.1"))
    assert found == Fact(Version("537.58"), "NVML", OriginKind.NVML)


@needs_compiler
@pytest.mark.parametrize(
    ("init", "version", "said"),
    [
        ("return 9;", "580.65.06", "NVML: Driver Not Loaded;"),
        ("abort();", "580.65.06", "libnvidia-ml.so.1 crashed (signal 6);"),
        ("_exit(3);", "580.65.06", "NVML: exit status 3;"),
        ("return 0;", "ERR!", "NVML: no driver version in `ERR!`;"),
    ],
)
def test_nvml_errors_are_told(tmp_path: Path, init: str, version: str, said: str) -> None:
    assert said in reason(probe(places(tmp_path, library=nvml(tmp_path, init=init, driver=version))))


@needs_compiler
def test_nvml_that_hangs(tmp_path: Path) -> None:
    library = nvml(tmp_path, init="for (;;) pause();")
    said = reason(probe(places(tmp_path, library=library, timeout=0.2)))
    assert said.startswith(f"NVML: asking {library}: ")
    assert "gave no answer within 0.2 s; nvidia-smi: " in said


def test_nvml_that_is_no_library(tmp_path: Path) -> None:
    library = put(tmp_path / "libnvidia-ml.so.1", "not a library at all, but long enough to have a header" * 4)
    assert "NVML: NVML Shared Library Not Found;" in reason(probe(places(tmp_path, library=str(library))))


@each(
    "release, expected",
    [
        ("5.15.167.4-microsoft-standard-WSL2\n", True),
        ("4.4.0-19041-Microsoft\n", True),
        ("6.8.0-45-generic\n", False),
    ],
)
def test_wsl_by_its_kernel(tmp_path: Path, release: str, expected: bool) -> None:
    put(tmp_path / "proc/sys/kernel/osrelease", release)
    assert is_wsl(tmp_path) is expected


def test_wsl_by_its_device_and_libraries(tmp_path: Path) -> None:
    put(tmp_path / "proc/sys/kernel/osrelease", "6.6.36-of-my-own\n")
    (tmp_path / "usr/lib/wsl/lib").mkdir(parents=True)
    assert not is_wsl(tmp_path)
    put(tmp_path / "dev/dxg", "")
    assert is_wsl(tmp_path)


def test_no_wsl_where_nothing_can_be_read(tmp_path: Path) -> None:
    assert not is_wsl(tmp_path)


def test_a_jetson_without_a_number_is_told(tmp_path: Path) -> None:
    put(tmp_path / "proc/driver/nvidia/version", text("proc-unnumbered"))
    put(tmp_path / "etc/nv_tegra_release", "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic\n")
    assert "/etc/nv_tegra_release: Jetson Linux 36.4.3" in reason(probe(places(tmp_path)))


def test_parse_tegra_garbage() -> None:
    assert parse_tegra("R36") is None
