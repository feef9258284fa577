"""TE611: submodules that are not there."""

from typing import Any

from tenv.checks.checkout_state import CheckoutState

SEVERITY = "error"
SPEAKS: dict[str, Any] = {"torch": "2.9.1", "state": CheckoutState(broken=("third_party/fmt",))}
SILENT: list[dict[str, Any]] = [
    {"torch": "2.9.1"},
    {"torch": "2.9.1", "state": CheckoutState()},
    {**SPEAKS, "manifest": {"environment": {"USE_SYSTEM_LIBS": "1"}}},
    {"torch": "2.9.1", "state": CheckoutState(eigen_missing=True)},
]
ALSO: list[dict[str, Any]] = [
    {
        "torch": "2.9.1",
        "state": CheckoutState(eigen_missing=True),
        "manifest": {"environment": {"BLAS": "Eigen"}},
    },
    {"torch": "2.9.1", "state": CheckoutState(broken=tuple(f"third_party/{name}" for name in "abcdef"))},
]
