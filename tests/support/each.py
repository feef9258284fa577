"""One test for all values of an argument: pytest takes longer for a test of its own than a short body does."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["each"]

Test = Callable[..., None]


def each(names: str, values: Iterable[Any]) -> Callable[[Test], Test]:
    """Run the body of a test for each value of an argument; the test fails with all values that fail.

    The fixtures are the same for all values, but each has a folder of its own in the place of `tmp_path`.

    Args:
        names: The name of the argument; several names, with commas between them, take the parts of each value.
        values: The values, of which there must be some.
    """
    every, arguments = list(values), [name.strip() for name in names.split(",")]
    assert every, f"no value of {names}"

    def of_all(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def whole(**fixtures: Any) -> None:
            failed = []
            for number, value in enumerate(every):
                parts, own = value if len(arguments) > 1 else (value,), dict(fixtures)
                if "tmp_path" in own:
                    own["tmp_path"] /= f"{number}"
                    own["tmp_path"].mkdir()
                try:
                    test(**dict(zip(arguments, parts, strict=True)), **own)
                except Exception as error:  # noqa: BLE001 (whatever a body raises is its failure)
                    failed.append(f"{value!s:.200}: {type(error).__name__}: {error}")
            assert not failed, f"{len(failed)} of {len(every)} fail:\n" + "\n".join(failed)

        kept = [one for name, one in signature.parameters.items() if name not in arguments]
        assert len(kept) == len(signature.parameters) - len(arguments), f"{test.__name__} lacks an argument of {names}"
        whole.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return whole

    return of_all
