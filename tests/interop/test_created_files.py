"""Files of public repositories, imported, locked, created and verified, from made packages of the requested names.

The packages have the versions of the requests, and no contents: this shows the way from a file to an environment.
`tests/interop/test_real_contents.py` takes wheels of the index in use for some of them.

All of the first twenty were tried with wheels of the index (November 2026, Python 3.11), and fifteen created so: ACT,
ESMValCore and nerfstudio (each with a made folder of the project, which requires a real package),
image-matching-models, BERTchen, MolSnapper, snake-ai, warp, u2Tokenizer, Oyez-SA-ASR, vocalizr (137 wheels, 5.7 GiB),
alphafold3 (21, 5.3 GiB), ztf-lfi-demo (34, 6.9 GiB), adaptive_compliance_policy (83, 7.4 GiB; with the pin of
`cuda-toolkit` that the error's hint names) and Pytorch-ONNX-CUDA-on-Pixi (72, two of them built: with the `sdists` of
the error's hints, `scikit-sparse` below 0.5 and Debian's SuiteSparse). Five have packages of conda alone, which were
made: foundationpose_cpp, st_gcn, NumTimeProbe, hubmap-organ-segmentation and image-cryo-python-AI.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tomli

from tenv.core.names import channel_urls
from tenv.core.versions import CondaRange, Range
from tenv.host.machine import current_platform
from tenv.rattler_api.records import Matcher
from tests.interop.public_files import FILES, PublicFile
from tests.support.conda import Channel, make_conda, make_python
from tests.support.fakes import Index, make_wheel
from tests.support.projects import HERE, call, write_config
from tests.support.source_trees import commit_all, write_tree

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(current_platform() != "linux-64", reason="the files are for linux-64"),
]

CHOSEN = (
    ("Cambridge-ICCS/FTorch", "conda/environment_cuda.yaml"),
    ("EverlastEngineering/larsnet-midi", "conda-lock.yml"),
    ("Deadshot09145/Telega-Image-Classification-Bot", "Pipfile"),
    ("piyueh/TorchSWE", "setup.cfg"),
)
_OF_PYTHON = ("pytorch", "torchvision")
"""The made conda packages that depend on Python, so that wheels take them for theirs."""

FIRST = 20
"""The number of files that come in whole, the first of the list, of which environments are made."""


def created(file: PublicFile, *, real: bool = False) -> str:
    """Import a file, lock, create and verify it in the working folder; return the last words, or those of an error.

    Args:
        file: The file.
        real: Whether the wheels are those of the index in use, and not made ones.
    """
    for name, text in file.texts.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    more = ["--environment", file.environment] if file.environment else []
    ended = call("import", Path(file.path).name, "--name", "made", "--platform", "linux-64", "--no-lock", *more)
    if ended.status:
        return f"import: {ended.err}"
    manifest = Path("manifests/made.toml")
    text = re.sub(r'^(python\s*= )".*"$', rf'\1"{HERE}.*"', manifest.read_text(), flags=re.MULTILINE)
    found = tomli.loads(text)
    cuda = found.get("requirements", {}).get("cuda", "")
    with ExitStack() as stack:
        write_config("[mirrors]\n" + "".join(_mirrors(found, cuda, stack)))
        for name, request in _tables(found, "pypi-dependencies"):
            if isinstance(request, Mapping) and {"git", "path"} & request.keys():
                text = _with_tree(text, name, request, "six" if real else "made-base")
            elif not real:
                _make_wheel(name, {"version": request} if isinstance(request, str) else request, cuda)
        if not real:
            make_wheel(Path("wheels"), "made_base", "1.0")
            index = stack.enter_context(Index(Path("wheels")))
            stack.enter_context(pytest.MonkeyPatch.context()).setenv("UV_DEFAULT_INDEX", index.url)
            text = re.sub(r'\b((?:url|index) = )"https?://[^"]*"', rf'\1"{index.url}"', text)
        manifest.write_text(re.sub(r'^format *= "flat"\n', "", text, flags=re.MULTILINE))
        for words in (("lock", "made"), ("create", "made", "--no-check"), ("verify", "made")):
            ended = call(*words)
            if ended.status:
                return f"{words[0]}: {ended.err}"
    return ended.err


def _with_tree(text: str, name: str, asked: Mapping[str, Any], requires: str) -> str:
    """Return the text of a manifest with a made repository or folder in the place of one of a package."""
    folder = write_tree(Path("trees", name), requires=requires)
    project = folder / "pyproject.toml"
    project.write_text(project.read_text().replace('"vision"', f'"{name.replace("-", "_")}"'))
    place = f'path = "../trees/{name}"' + (", editable = true" if asked.get("editable") else "")
    if "git" in asked:
        commit_all(folder, "one")
        place = f'git = "{folder.absolute().as_uri()}"'
    return re.sub(rf"^({re.escape(name)}\s*)= .*$", rf"\1= {{ {place} }}", text, flags=re.MULTILINE)


def _mirrors(manifest: Mapping[str, Any], cuda: str, stack: ExitStack) -> Iterator[str]:
    """Serve the made packages of each channel; yield the lines of settings that lead there."""
    for place, channel in enumerate(_channels(manifest)):
        served = stack.enter_context(Channel(Path(f"channel-{place}")))
        for name, request in _conda(manifest, channel):
            _make(served.folder, name, {"version": request} if isinstance(request, str) else request, cuda)
        if place == 0:
            make_python(served.folder)
        served.refresh()
        yield f'"{channel}" = ["{served.root}"]\n'


def _make_wheel(name: str, asked: Mapping[str, Any], cuda: str) -> None:
    version = next(one for one in _candidates(asked["version"]) if one in Range(asked["version"]))
    if name == "torch" and cuda and "+" not in version:
        version += f"+cu{cuda.replace('.', '')}"
    extras: dict[str, list[str]] = {extra: [] for extra in asked.get("extras", ())}
    make_wheel(Path("wheels"), name.replace("-", "_"), version, extras=extras)


def _channels(manifest: Mapping[str, Any]) -> Iterator[str]:
    rows = [request for _, request in _conda(manifest, "") if isinstance(request, Mapping)]
    words = [*manifest.get("channels", ["conda-forge"]), *(row["channel"] for row in rows if "channel" in row)]
    yield from dict.fromkeys(url for word in words for url in channel_urls(word))


def _tables(manifest: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any]]:
    for part in (manifest, manifest.get("platform", {}).get("linux-64", {}), *manifest.get("feature", {}).values()):
        yield from part.get(kind, {}).items()


def _conda(manifest: Mapping[str, Any], channel: str) -> Iterator[tuple[str, Any]]:
    """Yield the requests for packages that a channel serves: all of the first one, and those that name another."""
    first = next(url for word in manifest.get("channels", ["conda-forge"]) for url in channel_urls(word))
    for name, request in _tables(manifest, "dependencies"):
        word = request.get("channel") if isinstance(request, Mapping) else None
        if name != "python" and (not channel or channel in (channel_urls(word) if word else (first,))):
            yield name, request


def _make(folder: Path, name: str, asked: Mapping[str, Any], cuda: str) -> None:
    spec = f"{name} {CondaRange(asked['version']).spec}"
    of_cuda = [f"{cuda}.0", cuda] if cuda and (name.startswith("cuda") or name == "pytorch-cuda") else []
    named = [*of_cuda, *_candidates(asked["version"])]
    version = next(one for one in named if Matcher().has_version(spec, name, one))
    plain = f"cuda{cuda}_0" if cuda and name == "pytorch" else "0"
    build = str(asked.get("build", plain)).replace("*", "x").strip("=")
    depends = ["python"] if name in _OF_PYTHON else []
    make_conda(folder, name, version, build=build, depends=depends, files={f"share/made/{name}": ""})


def _candidates(text: str) -> list[str]:
    bounds = re.findall(r"\d[\w.]*(?:\+[\w.]+)?", text)
    plain = [bound.rstrip(".*") for bound in bounds]
    return [*plain, *(f"{bound}.0" for bound in plain), *(f"{bound}.1" for bound in plain), "1.0", "0"]


@pytest.mark.usefixtures("empty_project")
def test_public_files_become_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pythons: Path) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    monkeypatch.setenv("PATH", str(pythons))
    others = [file for file in FILES if (file.repository, file.path) in CHOSEN]
    assert len(others) == len(CHOSEN)
    first = [file for file in FILES if file.now == "whole"][:FIRST]
    files = [*first, *(file for file in others if file not in first)]
    for file in files:
        for path in Path().iterdir():
            if path.name != "tenv.toml":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert "all files are intact" in created(file), str(file)
