"""The GPU that `--assume-gpu` names, in each of its spellings."""

from tenv.checks.host_options import find_gpu
from tests.support.each import each


@each(
    "text, capability",
    [
        ("8.9", "8.9"),
        ("9.0a", "9.0"),
        ("sm_90", "9.0"),
        ("sm_90a", "9.0"),
        ("SM_75", "7.5"),
        ("sm_120f", "12.0"),
        ("compute_121", "12.1"),
        ("10de:2684", "8.9"),
        ("0x10de 0x2684", "8.9"),
        ("2684", "8.9"),
        ("0x20B5", "8.0"),
        ("RTX 4090", "8.9"),
        ("GeForce RTX 40...", "8.9"),
        ("NVIDIA A100-SXM4…", "8.0"),
        ("PG509-210", "8.0"),
        ("NVIDIA PG506-232", "8.0"),
        ("NVIDIA A100-PG509-200", "8.0"),
        ("Tesla PG503-216", "7.0"),
        ("sm_999", None),
        ("4.4", None),
        ("ffff", None),
        ("10de:ffff", None),
        ("PG999-100", None),
        ("GeForce RTX ...", None),
    ],
)
def test_each_spelling(text: str, capability: str | None) -> None:
    found = find_gpu(text)
    assert (str(found[1]) if found else None) == capability
