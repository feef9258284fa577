"""TE608: the build system of the revision is not in the target."""

from typing import Any

from tests.checks.rules.cases import wheel

SETUPTOOLS = (wheel("setuptools", "80.0"), wheel("ninja", "1.13"))

SEVERITY = "warning"
SPEAKS: dict[str, Any] = {"torch": "2.14.1", "wheels": SETUPTOOLS}
SILENT: list[dict[str, Any]] = [{"torch": "2.13.0", "wheels": SETUPTOOLS}, {"torch": "2.14.1"}, {"wheels": SETUPTOOLS}]
