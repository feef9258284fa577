"""Locks made by hand, and what they answer: what stands in them has the right form, and is nowhere to be had."""

from collections.abc import Sequence
from typing import Any

from tenv.core.files import digest_bytes
from tenv.core.versions import Range, Version
from tenv.locks.lock import Archive, CondaPackage, Lock, Wheel, from_manifest
from tenv.locks.lock_file import render_lock
from tenv.targets.manifest import Manifest, Requirements, WheelRequest

__all__ = ["archive", "conda", "lock", "lock_bytes", "lock_of", "manifest", "wheel"]


def wheel(name: str, version: str, *python: str, size: int | None = 10, tag: str = "py3-none-any") -> Wheel:
    """Return a wheel for some Python minors."""
    file = f"{name.replace('-', '_')}-{version}-{tag}.whl"
    return Wheel(name, version, file, digest_bytes(file.encode()), size, python or ("3.11", "3.12"))


def conda(
    name: str, version: str, *depends: str, build: str = "h0_0", size: int | None = 10, channel: str = "conda-forge"
) -> CondaPackage:
    """Return a conda package for linux-64."""
    home = f"https://conda.anaconda.org/{channel}"
    url = f"{home}/linux-64/{name}-{version}-{build}.conda"
    return CondaPackage(
        name, version, build, "linux-64", home, url, digest_bytes(url.encode()), size=size, depends=depends
    )


def archive(name: str, version: str, url: str = "", size: int | None = 10) -> Archive:
    """Return an archive."""
    url = url or f"https://x.org/{name}-{version}.tar.xz"
    return Archive(name, version, url, digest_bytes(url.encode()), size, "tar.xz")


def lock(
    *packages: Wheel | CondaPackage | Archive, platforms: Sequence[str] = ("linux-64",), **requirements: str
) -> Lock:
    """Return a lock with the same packages for every platform."""

    def of(kind: type) -> Any:
        return {platform: tuple(row for row in packages if isinstance(row, kind)) for platform in platforms}

    return Lock(
        "t", tuple(platforms), of(Wheel), requirements, {}, "0" * 64, conda=of(CondaPackage), archives=of(Archive)
    )


def manifest(**wheels: str) -> Manifest:
    """Return a manifest that asks for wheels."""
    requests = {name.replace("_", "-"): WheelRequest(Range(text)) for name, text in wheels.items()}
    return Manifest(
        "t",
        "t.toml",
        platforms=("linux-64",),
        python=Range(">=3.11,<3.13"),
        requirements=Requirements(Version("13.0"), Version("2.28")),
        wheels=requests,
    )


def lock_of(asked: Manifest, *wheels: Wheel) -> Lock:
    """Return the lock that answers a manifest."""
    return from_manifest(asked, {"wheels": {"linux-64": wheels}})


def lock_bytes(made: Lock) -> bytes:
    """Return the file of a lock, whose conda part rattler writes elsewhere."""
    lines = ["version: 7", "platforms:", *(f"- name: {platform}" for platform in made.platforms), "environments:"]
    lines += [f"  {made.target}:", "    channels: []", "    packages:"]
    for platform in made.platforms:
        rows = [f"      - conda: {row.url}" for row in made.conda.get(platform, ())]
        lines += [f"      {platform}:{'' if rows else ' []'}", *rows]
    urls = {row.url: row for packages in made.conda.values() for row in packages}
    lines.append("packages:" if urls else "packages: []")
    for url, row in urls.items():
        lines += [f"- conda: {url}", f"  sha256: {row.sha256}", f"  depends: [{', '.join(row.depends)}]"]
    return render_lock(made, "\n".join(lines))
