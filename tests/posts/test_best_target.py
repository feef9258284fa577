"""`tenv create auto` among the targets that tenv ships, for machines with a GPU, and why the sisters lost."""

from pathlib import Path

import pytest

from tenv.checks.before_create import look_around
from tenv.checks.choose_target import choose
from tenv.checks.host_options import HostOptions
from tenv.project.context import Context

HERE = Path(__file__).parent
OF_THE_HOST = "the target resolves gcc >=9.4,<14 from the host, which has none that fits (TE309): "


def answer(host: str, driver: str, gpu: str, pytorch: str) -> dict[str, str]:
    """Return what is said of each target, the selected one first."""
    options = HostOptions(host_report=f"{host}.json", assume_driver=driver, assume_gpu=gpu)
    context = Context(offline=True)
    choice = choose(context, look_around(context, pytorch, options), pytest.fail)
    said = [line.removeprefix("auto: ").removeprefix("not ") for line in choice.lines() if ", since " in line]
    names = [line.partition(",")[0] for line in said]
    assert len({*names}) == len(names)
    return dict(line.split(", since ", 1) for line in said)


@pytest.mark.parametrize(
    ("machine", "taken", "sister", "why"),
    [
        (
            ("stories/ubuntu-22.04", "560.35.05", "A100", "2.6"),
            "cuda126-archives",
            "cuda126",
            "`cuda126-archives` has the same CUDA without conda, and suits this host",
        ),
        (
            ("stories/debian-13", "560.35.05", "A100", "2.6"),
            "cuda126",
            "cuda126-archives",
            "glibc 2.41: does not compile with the headers of CUDA 12.6: from 2.41 on, both declare sinpi, ",
        ),
        (
            ("stories/ubuntu-18.04", "535.104.12", "GTX 1660 Ti", "2.3"),
            "cuda121",
            "cuda121-archives",
            "gcc: the target resolves gcc >=9.4,<13 from the host, which has none that fits (TE309): "
            "/usr/bin/x86_64-linux-gnu-g++-7: 7.5.0 is not >=9.4,<13",
        ),
        (
            ("stories/ubuntu-18.04", "535.104.12", "GTX 1660 Ti", "2.4"),
            "cuda121",
            "cuda124",
            "PyTorch 2.4 calls CUDA 12.4 experimental, and NVIDIA packages none after 12.1 for Ubuntu 18.04 (glibc "
            "2.27)",
        ),
        (
            ("stories/ubuntu-18.04", "535.104.12", "GTX 1660 Ti", "2.5"),  # which calls 12.4 stable
            "cuda124",
            "cuda124-archives",
            f"gcc: {OF_THE_HOST}/usr/bin/x86_64-linux-gnu-g++-7: 7.5.0 is not >=9.4,<14",
        ),
        (
            ("stories/ubuntu-22.04", "450.80.02", "V100", "2.1"),
            "cuda118-archives",
            "cuda118",
            "`cuda118-archives` has the same CUDA without conda, and suits this host",
        ),
    ],
)
def test_the_best_target_is_named_with_the_reason_that_its_sister_lost(
    machine: tuple[str, str, str, str], taken: str, sister: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("PWD", str(HERE))
    said = answer(*machine)
    assert next(iter(said)) == taken
    assert said[sister].startswith(why)
    assert not {"cuda117", "legacy", "cpu"} & {*said}  # what has an older CUDA or none did not lose to it
