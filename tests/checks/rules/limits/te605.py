"""TE605: a library of another PyTorch era."""

from typing import Any

from tests.checks.rules.cases import archive, wheel

SEVERITY = "error"
SPEAKS: dict[str, Any] = {
    "cuda": "12.1",
    "torch": "2.1.2",
    "manifest": {"environment": {"USE_CUSPARSELT": "1"}},
    "archives": (
        archive(
            "cusparselt",
            "0.6.0.6",
            "https://developer.download.nvidia.com/compute/cusparselt/redist/libcusparse_lt/linux-x86_64/"
            "libcusparse_lt-linux-x86_64-0.6.0.6-archive.tar.xz",
        ),
    ),
}
SILENT: list[dict[str, Any]] = [
    {"torch": "2.1.2", "archives": (archive("cusparselt", "0.5.0.1", "https://x/a.tar.xz"),)},
    {"torch": "2.2.2", "archives": (archive("cusparselt", "0.6.0.6", "https://x/a.tar.xz"),)},
    {"archives": (archive("cusparselt", "0.6.0.6", "https://x/a.tar.xz"),)},
    {"torch": "2.6.0", "wheels": (wheel("triton", "3.2.0"),)},
    {"torch": "2.12.0", "wheels": (wheel("triton", "3.7.1"),)},  # of the same minor version
    {"torch": "1.12.1", "wheels": (wheel("triton", "3.2.0"),)},  # before torch.compile
]
