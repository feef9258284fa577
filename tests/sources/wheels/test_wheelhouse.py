"""The digest of a compiled wheel in a wheelhouse: each input that no machine changes makes another one."""

import json
from dataclasses import replace
from pathlib import Path

from tenv.core.versions import Range, Version
from tenv.facts.tables import load_facts
from tenv.facts.torch_packages import TorchPackageTable
from tenv.locks.lock import Lock, LockedTree, Wheel
from tenv.sources.wheels.wheelhouse import key_of_wheelhouse, pin_wheels
from tenv.targets.manifest import Manifest, Requirements, WheelRequest
from tenv.targets.variable_requests import VariableRequest

ARCHS, PLATFORM = "TORCH_CUDA_ARCH_LIST", "linux-64"
TABLE = load_facts().torch_packages


def wheel(name: str, version: str, sha256: str) -> Wheel:
    return Wheel(name, version, f"{name}-{version}-py3-none-any.whl", sha256 * 64, 1, ("3.11", "3.12"))


ROW = LockedTree(
    "flash-attn", "2.8.3", ("3.11", "3.12"), (), file="flash_attn-2.8.3.tar.gz", digest="a" * 64, isolated=False
)
WHEELS = (wheel("torch", "2.11.0", "b"), wheel("nvidia-cuda-nvcc", "13.0.88", "c"), wheel("numpy", "2.0", "d"))
REQUEST = WheelRequest(Range("*"), build=True, isolated=False)


def key(
    row: LockedTree = ROW,
    wheels: tuple[Wheel, ...] = WHEELS,
    minor: str = "3.11",
    request: WheelRequest = REQUEST,
    table: TorchPackageTable = TABLE,
    archs: str = "9.0",
    force: str = "",
) -> str:
    lock = Lock("ext", (PLATFORM,), {PLATFORM: wheels}, {}, {}, "", trees={PLATFORM: (row,)})
    given = {ARCHS: archs, "FORCE_CUDA": force}
    values = {name: VariableRequest(value) for name, value in given.items() if value}
    cuda = Requirements(cuda=Version("13.0"))
    manifest = Manifest("ext", "ext.toml", platforms=(PLATFORM,), requirements=cuda, environment=values)
    return key_of_wheelhouse(row, lock, replace(manifest, wheels={row.name: request}), PLATFORM, minor, table)


def test_each_input_makes_another_digest_and_other_wheels_none() -> None:
    found = next(row for row in TABLE.rows if row.name == "flash-attn")
    other = TorchPackageTable((replace(found, force=("FLASH_ATTENTION_FORCE_BUILD=1",)),))
    keys = {
        "base": key(),
        "sdist": key(replace(ROW, digest="e" * 64)),
        "commit": key(replace(ROW, digest="", commit="e" * 40)),
        "torch": key(wheels=(wheel("torch", "2.12.0", "b"), *WHEELS[1:])),
        "torch's bytes": key(wheels=(wheel("torch", "2.11.0", "e"), *WHEELS[1:])),
        "toolkit": key(wheels=(WHEELS[0], wheel("nvidia-cuda-nvcc", "13.0.88", "e"), WHEELS[2])),
        "Python": key(minor="3.12"),
        "architectures": key(archs="8.0;9.0"),
        "switch": key(table=other),
        "variable": key(force="1"),
        "standard": key(request=replace(REQUEST, cxx=20)),
        "architectures of the request": key(request=replace(REQUEST, archs="9.0")),
        "wheel of the build": key(replace(ROW, build=(f"ninja==1.13 sha256:{'f' * 64}",))),
    }
    assert len({*keys.values()}) == len(keys), keys
    assert all(len(one) == 64 for one in keys.values())
    assert key(wheels=(*WHEELS, wheel("requests", "3.0", "e"))) == keys["base"]


def test_nothing_is_for_other_machines_where_this_one_decides() -> None:
    assert key(archs="") == ""  # the GPUs of the machine decide
    assert key(replace(ROW, digest="", path="../ops")) == ""
    assert key(replace(ROW, isolated=True)) == ""


def test_a_map_that_can_t_be_read_takes_no_wheel_out_of_a_lock(tmp_path: Path) -> None:
    """Another machine would compile for hours what the lock named before."""
    pinned = replace(ROW, wheels=("3.11 sha256:" + "e" * 64,))
    old = Lock("ext", (PLATFORM,), {PLATFORM: WHEELS}, {}, {}, "", trees={PLATFORM: (pinned,)})
    new = replace(old, trees={PLATFORM: (ROW,)})
    values = {ARCHS: VariableRequest("9.0")}
    manifest = Manifest(
        *("ext", "ext.toml"),
        platforms=(PLATFORM,),
        environment=values,
        wheels={ROW.name: REQUEST},
        wheelhouse=str(tmp_path),
    )

    def pins() -> tuple[str, ...]:
        return pin_wheels(new, manifest, TABLE, old, said.append).trees[PLATFORM][0].wheels

    for text in ("{", "[]", json.dumps({"schema": 2, "wheels": {}})):
        said = list[str]()
        (tmp_path / "wheelhouse.json").write_text(text)
        assert (pins(), len(said)) == (pinned.wheels, 1), text
    (tmp_path / "wheelhouse.json").write_text(json.dumps({"schema": 1, "wheels": {}}))
    assert pins() == ()
