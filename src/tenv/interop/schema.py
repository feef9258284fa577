"""The JSON schema of manifests, which editors complete and check them with."""

from tenv.interop.interface import Exported, Format
from tenv.targets.manifest_keys import SCHEMA_FILE, schema_text


def _write() -> Exported:
    note = f"a manifest names it in its first line: `#:schema ./{SCHEMA_FILE}`"
    return Exported({SCHEMA_FILE: schema_text().encode()}, notes=(note,))


FORMAT = Format(
    name="schema",
    recognize=lambda name, _: name == SCHEMA_FILE,
    holds_lock=False,
    alone=_write,
)
