"""Host reports of a fleet whose machines differ in driver, GPU, memory and disk."""

from typing import Any

DRIVERS = ("580.65.06", "535.104.12", "515.76", "570.133.20", "")
GPUS = (("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA GeForce GTX 1660 Ti", "7.5"), ("NVIDIA H200", "9.0"))


def machine(plain: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the report of one machine of the fleet; `plain` is that of this one."""
    name, capability = GPUS[number % len(GPUS)]
    driver = DRIVERS[number % len(DRIVERS)]
    values = {
        "hostname": f"node{number}",
        "gpus": [{"name": name, "compute_capability": capability}],
        "memory": (64 << 30) + 4096 * number,
        "disk": {"path": "/home", "free": (500 << 30) + 4096 * number, "file_system": "ext4"},
    } | ({"driver": driver} if driver else {})
    facts = {key: {"value": value, "origin": "benchmark"} for key, value in values.items()}
    return {**plain, **({} if driver else {"driver": {"missing": "no driver"}}), **facts}
