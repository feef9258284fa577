"""TE617: sources that are converted for ROCm."""

from dataclasses import replace
from typing import Any

from tenv.checks.checkout_state import CheckoutState
from tenv.checks.hipified import Hipified

CHANGED = {"torch/csrc/Module.cpp": "b"}
NOTED = Hipified(".tenv/hipified/note.json", "a" * 40, CHANGED, ("c10/hip/HIPMacros.h",), noted=True)
BY_HAND = Hipified("c10/hip/HIPMacros.h")

SEVERITY = "note"
SPEAKS: dict[str, Any] = {"torch": "2.9.1", "state": CheckoutState(hipified=NOTED)}
SILENT: list[dict[str, Any]] = [{"torch": "2.9.1", "state": CheckoutState()}, {"torch": "2.9.1"}]
ALSO: list[dict[str, Any]] = [{"torch": "2.9.1", "state": CheckoutState(hipified=BY_HAND), "cuda": None}]
ALSO += [{"torch": "2.9.1", "state": CheckoutState(hipified=replace(NOTED, back=1))}]
