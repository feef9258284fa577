"""The whole report: every probe, those that wait for programs at the same time."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tenv.core.threads import ahead
from tenv.core.versions import Version
from tenv.host import (
    compat,
    compilers,
    container,
    cuda_api,
    driver,
    gpus,
    libstdcxx,
    machine,
    storage,
    system,
    toolkits,
)
from tenv.host.interface import Fact, Missing
from tenv.host.loader import Loader
from tenv.host.nvidia import Nvidia
from tenv.host.places import Places
from tenv.host.report import Compat, Gpu, HostReport

__all__ = ["collect"]


@dataclass(frozen=True, slots=True)
class _Driver:
    """What depends on the driver's tools, which are asked one after the other."""

    driver: Fact[Version] | Missing
    cuda: Fact[Version] | Missing
    compat: Fact[Compat] | Missing
    gpus: Fact[tuple[Gpu, ...]] | Missing


def collect(places: Places | None = None, folder: Path = Path()) -> HostReport:
    """Return what a machine offers.

    Args:
        places: Where to look; None means this machine.
        folder: Where environments go, for the disk.
    """
    places = places or Places()
    loader = Loader(places)
    of_toolkits = ahead(partial(toolkits.probe, places))
    of_compilers = ahead(partial(compilers.probe, places))
    _ = loader.cache  # read once, before two threads ask for it
    of_driver = ahead(partial(_driver, loader))
    found = machine.probe(places.root)
    library = libstdcxx.probe(loader)
    asked = of_driver()
    return HostReport(
        platform=system.host_platform(places),
        driver=asked.driver,
        cuda=asked.cuda,
        compat=asked.compat,
        gpus=asked.gpus,
        toolkits=of_toolkits(),
        compilers=of_compilers(),
        libc=machine.glibc(),
        libstdcxx=library,
        cores=found.cores,
        memory=found.memory,
        disk=storage.probe(folder, places),
        wsl=system.wsl(places),
        container=container.probe(places),
        ptrace_scope=system.ptrace_scope(places),
        hostname=system.hostname(places),
    )


def _driver(loader: Loader) -> _Driver:
    nvidia = Nvidia(loader.places, loader)
    kernel = driver.probe(nvidia=nvidia)
    return _Driver(
        driver=kernel,
        cuda=cuda_api.probe(nvidia=nvidia),
        compat=compat.probe(loader, kernel),
        gpus=gpus.probe(nvidia=nvidia),
    )
