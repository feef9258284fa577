"""The choice of a target among those that are shipped, asked without a command line."""

from tenv.checks.before_create import Surroundings
from tenv.checks.choose_target import choose
from tenv.core.versions import Version
from tenv.host.interface import Missing
from tenv.project.context import Context
from tests.checks.rules.cases import facts, gxx, host

GCC = (gxx("13.3.0"), gxx("13.3.0", "/usr/bin/gcc", kind="gcc"))


def test_a_target_of_which_nothing_is_known_about_running_falls_out() -> None:
    around = Surroundings(host(toolkits=Missing("the report does not say"), compilers=GCC), None, facts())
    chosen = choose(Context(), around, lambda _: None)
    assert chosen.target == "cuda132"
    reasons = {row.target: row.reason for row in chosen.ranking}
    assert reasons["cuda-system"] == (
        "cuda-toolkit: the target resolves cuda-toolkit from the host, but detection failed (TE309): "
        "the report does not say"
    )


def test_a_cuda_that_no_release_of_pytorch_was_published_for_comes_after_those_that_were() -> None:
    around = Surroundings(host(driver=Version("610.43.02"), compilers=GCC), None, facts())
    chosen = choose(Context(), around, lambda _: None)
    assert chosen.target == "cuda132"
    (aside,) = (row.aside for row in chosen.better if row.target == "cuda133")
    assert aside == "PyTorch 2.15 was published for CUDA 13.2 at most"
