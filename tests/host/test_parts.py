"""The small probes: libstdc++, disk, container, names."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.versions import Version
from tenv.host import libstdcxx, machine, system
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.loader import Loader
from tenv.host.report import Libstdcxx
from tests.host.builders import library, needs_compiler, places, put
from tests.support.each import each

SYSTEM, VARIABLE = OriginKind.SYSTEM, OriginKind.VARIABLE
NO_CONTAINER = Missing("no sign of a container", ReasonKind.NONE)

# Hand-made, after proc_pid_mountinfo(5).
MOUNTS = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:40 / /home rw,relatime shared:1 master:2 - nfs4 server:/home rw
31 30 0:41 / /home/a\\040b rw - xfs /dev/sdb rw
32 27 0:42 / /over rw - ext4 /dev/sdc rw
33 27 0:43 / /over rw - overlay overlay rw
garbage
34 27 0:44 / /cut
"""


def stdcxx(path: Path, *names: str) -> Path:
    nodes = "\n".join(f"{name} {{ global: f{number}; }};" for number, name in enumerate(names))
    script = put(path.parent / "versions", nodes)
    functions = "\n".join(f"void f{number}(void) {{}}" for number in range(len(names)))
    return library(path, functions, *([f"-Wl,--version-script={script}"] if names else []))


@needs_compiler
def test_the_newest_symbols_of_the_file(tmp_path: Path) -> None:
    real = stdcxx(
        tmp_path / "usr/lib64/libstdc++.so.6.0.33",
        *("GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "GLIBCXX_LDBL_3.4", "CXXABI_1.3.9", "CXXABI_1.3.13"),
        *("CXXABI_TM_1", "CXXABI_FLOAT128"),
    )
    real.with_name("libstdc++.so.6").symlink_to(real.name)
    expected = Libstdcxx(str(real), Version("3.4.30"), Version("1.3.13"))
    assert libstdcxx.probe(Loader(places(tmp_path))) == Fact(expected, "/usr/lib64", OriginKind.LOADER)


@needs_compiler
@pytest.mark.parametrize(
    ("names", "said"), [((), "defines no symbol versions"), (("GLIBCXX_3.4",), "no GLIBCXX or no CXXABI version")]
)
def test_a_library_without_them(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    stdcxx(tmp_path / "usr/lib64/libstdc++.so.6", *names)
    found = libstdcxx.probe(Loader(places(tmp_path)))
    assert isinstance(found, Missing)
    assert said in found.reason


@each("content", [b"", b"\x7fELF", b"INPUT(-lm)", b"\x7fELF\x02\x01\x01" + b"\xff" * 80])
def test_a_file_that_is_no_library(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "libstdc++.so.6")
    path.write_bytes(content)
    assert isinstance(libstdcxx.defined_versions(path), Missing)


@needs_compiler
def test_a_library_that_is_cut_off(tmp_path: Path) -> None:
    path = stdcxx(tmp_path / "libstdc++.so.6", "GLIBCXX_3.4", "CXXABI_1.3")
    whole = path.read_bytes()
    for size in range(0, len(whole), 997):
        path.write_bytes(whole[:size])
        assert isinstance(libstdcxx.defined_versions(path), Missing | tuple)


@needs_compiler
def test_what_a_compiler_links(tmp_path: Path) -> None:
    """The linker takes a link to the library, or a script that names it, such as that of Red Hat's toolsets."""
    real = stdcxx(tmp_path / "lib64/libstdc++.so.6.0.30", "GLIBCXX_3.4", "GLIBCXX_3.4.30", "CXXABI_1.3")
    link = tmp_path / "gcc/libstdc++.so"
    link.parent.mkdir()
    link.symlink_to(real)
    script = put(
        tmp_path / "toolset/libstdc++.so", f"OUTPUT_FORMAT(elf64-x86-64)\nINPUT ( {real} -lstdc++_nonshared )\n"
    )
    for linked in (link, script):
        assert libstdcxx.highest(libstdcxx.linked_versions(linked), "GLIBCXX") == Version("3.4.30")


@each("content", ["", "INPUT(-lm)", "INPUT ( /no/libstdc++.so.6 )"])
def test_what_a_compiler_links_can_t_be_read(tmp_path: Path, content: str) -> None:
    assert libstdcxx.linked_versions(tmp_path / "no") == ()
    assert libstdcxx.linked_versions(put(tmp_path / "libstdc++.so", content)) == ()


def test_a_script_that_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "libstdc++.so"
    put(path, f"INPUT ( {path} )")
    assert libstdcxx.linked_versions(path) == ()


def test_no_libstdcxx(tmp_path: Path) -> None:
    assert libstdcxx.probe(Loader(places(tmp_path))) == Missing("the loader finds no libstdc++.so.6", ReasonKind.NONE)


@each(
    "folder, kind",
    [
        ("/", "ext4"),
        ("/homestead", "ext4"),
        ("/home", "nfs4"),
        ("/home/a b/c", "xfs"),
        ("/over/x", "overlay"),
        ("/cut", "ext4"),
    ],
)
def test_mounts(folder: str, kind: str) -> None:
    assert machine.parse_mounts(MOUNTS, folder) == kind


@given(st.text(), st.text())
def test_mounts_never_raise(mounts: str, folder: str) -> None:
    kind = machine.parse_mounts(mounts, folder)
    assert kind is None or kind in mounts


def test_disk_of_a_folder_to_come(tmp_path: Path) -> None:
    put(tmp_path / "proc/self/mountinfo", MOUNTS)
    found = machine.disk(tmp_path / "not/yet", places(tmp_path))
    assert isinstance(found, Fact)
    assert (found.value.path, found.value.file_system, found.value.free > 0) == (f"{tmp_path}/not/yet", "ext4", True)
    assert found.origin == f"statvfs of {tmp_path}, /proc/self/mountinfo"


def test_disk_without_mounts(tmp_path: Path) -> None:
    found = machine.disk(tmp_path, places(tmp_path / "nowhere"))
    assert isinstance(found, Fact)
    assert found.value.file_system == "unknown"


@each(
    "files, environ, expected",
    [
        ({}, {}, NO_CONTAINER),
        ({"/.dockerenv": ""}, {}, Fact("docker", "/.dockerenv", SYSTEM)),
        ({"/run/.containerenv": ""}, {"container": "oci"}, Fact("podman", "/run/.containerenv", SYSTEM)),
        ({}, {"container": "lxc"}, Fact("lxc", "the variable `container`", VARIABLE)),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, Fact("apptainer", "APPTAINER_CONTAINER", VARIABLE)),
        (
            {"/.dockerenv": ""},
            {"KUBERNETES_SERVICE_HOST": "x"},
            Fact("kubernetes", "KUBERNETES_SERVICE_HOST", VARIABLE),
        ),
        ({"/run/systemd/container": "systemd-nspawn\n"}, {}, Fact("systemd-nspawn", "/run/systemd/container", SYSTEM)),
        ({"/proc/1/cgroup": "4:memory:/docker/0123abc\n"}, {}, Fact("docker", "/proc/1/cgroup", SYSTEM)),
        ({"/proc/1/cgroup": "0::/kubepods.slice/kubepods-x.slice\n"}, {}, Fact("kubernetes", "/proc/1/cgroup", SYSTEM)),
        ({"/proc/1/cgroup": "0::/init.scope\n4:x:/dockerlike\n"}, {}, NO_CONTAINER),
    ],
)
def test_containers(tmp_path: Path, files: dict[str, str], environ: dict[str, str], expected: object) -> None:
    for path, content in files.items():
        put(tmp_path / path.lstrip("/"), content)
    assert system.container(places(tmp_path, variables=environ)) == expected


def test_names_and_debuggers(tmp_path: Path) -> None:
    here = places(tmp_path, machine="aarch64")
    scope = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
    assert isinstance(system.ptrace_scope(here), Missing)
    put(scope, "1\n")
    assert system.ptrace_scope(here) == Fact(1, "/proc/sys/kernel/yama/ptrace_scope", SYSTEM)
    put(scope, "x")
    assert isinstance(system.ptrace_scope(here), Missing)
    assert isinstance(system.hostname(here), Fact)
    put(tmp_path / "proc/sys/kernel/hostname", "node7\n")
    assert system.hostname(here) == Fact("node7", "/proc/sys/kernel/hostname", SYSTEM)
    assert system.host_platform(here).value.endswith("-aarch64")
    assert system.wsl(here).value is False
