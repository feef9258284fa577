"""The source of a target's toolkit."""

from enum import Enum

from tenv.targets.manifest import Manifest


class ToolkitKind(Enum):
    """The source of a target's CUDA toolkit or ROCm; for a target without both, of the libraries that a build uses."""

    CONDA = "conda"
    ARCHIVES = "archives"
    WHEELS = "wheels"
    SYSTEM = "system"


def toolkit_kind(manifest: Manifest) -> ToolkitKind:
    """Return the source of a target's toolkit, which is the same on all of its platforms."""
    views = [manifest, *(manifest.on(platform) for platform in manifest.platforms)]
    if any({"cuda-toolkit", "rocm"} & {*view.system} for view in views):
        return ToolkitKind.SYSTEM
    if any("cuda" in (name, request.product) for view in views for name, request in view.archives.items()):
        return ToolkitKind.ARCHIVES
    if any(view.dependencies for view in views):
        return ToolkitKind.CONDA
    return ToolkitKind.WHEELS if any(view.wheels for view in views) else ToolkitKind.SYSTEM
