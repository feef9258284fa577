"""The table of docs/interop.md: what an import keeps of each format, by files that are imported here."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenv.interop.formats import FORMATS, find_format
from tests.interop.records import HOME, SHA
from tests.support.projects import call

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
BEGIN, END = "<!-- kept:begin -->\n", "<!-- kept:end -->"

KINDS = (
    "conda packages",
    "wheels",
    "extras",
    "requests of one platform",
    "the index of one package",
    "further indexes",
    "a wheel at an address",
    "a git repository",
    "a folder",
    "variables",
    "groups, as features",
    "bounds of packages that are not requested",
    "files by hash, as a lock",
)
INDEX = "https://download.pytorch.org/whl/cu128"
WHEEL = "https://example.org/it-1.0-py3-none-any.whl"
GIT = "https://example.org/it"
BUILT = f"{HOME}/linux-64/bzip2-1.0.8-hda65f42_8.conda"

PIXI = '[workspace]\nname = "w"\nchannels = ["conda-forge"]\nplatforms = ["linux-64", "win-64"]\n'
YAML = "name: w\nchannels: [conda-forge]\nplatforms: [linux-64, win-64]\ndependencies:\n- python=3.12\n"
PROJECT = '[project]\nname = "w"\nversion = "1"\nrequires-python = ">=3.12,<3.13"\n'
PYLOCK = 'lock-version = "1.0"\ncreated-by = "it"\nrequires-python = ">=3.12,<3.13"\n[[packages]]\nname = "it"\n'
FILES = f'wheels = [{{ url = "{WHEEL}", hashes = {{ sha256 = "{SHA["alpha"]}" }} }}]\n'
OTHER = '[[packages]]\nname = "six"\nversion = "1.0"\nindex = "https://index.example/simple"\n' + FILES.replace(
    "it-", "six-"
)
UV = 'version = 1\nrequires-python = ">=3.12,<3.13"\n'
UV += '[[package]]\nname = "w"\nversion = "1"\nsource = { virtual = "." }\n'
UV_IT = (
    'dependencies = [{ name = "it" }]\n[package.metadata]\nrequires-dist = [{ name = "it"%s }]\n'
    '[[package]]\nname = "it"\nversion = "1.0"\nsource = { registry = "https://index.example/simple" }\n'
    f'wheels = [{{ url = "{WHEEL}", hash = "sha256:{SHA["alpha"]}" }}]\n'
)
UV_GROUP = '[package.optional-dependencies]\ngpu = [{ name = "six" }]\n'
UV_SIX = (
    '[[package]]\nname = "six"\nversion = "1.0"\nsource = { registry = "https://index.example/simple" }\n'
    f'wheels = [{{ url = "https://files.example/six-1.0-py3-none-any.whl", hash = "sha256:{SHA["beta"]}" }}]\n'
)
FOLDER = {"it/pyproject.toml": '[project]\nname = "it"\nversion = "1"\n'}
SOURCES = f'[[source]]\nname = "pypi"\nurl = "https://index.example/simple"\n[[source]]\nname = "a"\nurl = "{INDEX}"\n'
MARKER = "sys_platform == 'win32'"

SAMPLES: dict[str, dict[str, tuple[str, str, str]]] = {
    "pixi": {
        "conda packages": ("pixi.toml", f'{PIXI}[dependencies]\nbzip2 = "1.*"\n', 'bzip2 = "1.*"'),
        "wheels": ("pixi.toml", f'{PIXI}[pypi-dependencies]\nit = ">=1"\n', 'it = ">=1"'),
        "extras": (
            "pixi.toml",
            f'{PIXI}[pypi-dependencies]\nit = {{ version = "*", extras = ["x"] }}\n',
            'extras = ["x"]',
        ),
        "bounds of packages that are not requested": (
            "pixi.toml",
            f'{PIXI}[pypi-dependencies]\nit = "*"\n[pypi-options.dependency-overrides]\nsix = "<2"\n',
            'overrides = ["six<2"]',
        ),
        "requests of one platform": (
            "pixi.toml",
            f'{PIXI}[target.win-64.dependencies]\nbzip2 = "1.*"\n',
            "[platform.win-64.dependencies]",
        ),
        "the index of one package": (
            "pixi.toml",
            f'{PIXI}[pypi-dependencies]\nit = {{ version = "*", index = "{INDEX}" }}\n',
            f'index = "{INDEX}"',
        ),
        "further indexes": (
            "pixi.toml",
            f'{PIXI}[pypi-dependencies]\nit = "*"\n[pypi-options]\nextra-index-urls = ["{INDEX}"]\n',
            f'url = "{INDEX}"',
        ),
        "a wheel at an address": ("pixi.toml", f'{PIXI}[pypi-dependencies]\nit = {{ url = "{WHEEL}" }}\n', WHEEL),
        "a git repository": ("pixi.toml", f'{PIXI}[pypi-dependencies]\nit = {{ git = "{GIT}" }}\n', GIT),
        "a folder": ("pixi.toml", f'{PIXI}[pypi-dependencies]\nit = {{ path = "it" }}\n', 'path = "../it"'),
        "variables": ("pixi.toml", f'{PIXI}[dependencies]\nbzip2 = "*"\n[activation.env]\nA = "1"\n', 'A = "1"'),
        "groups, as features": (
            "pixi.toml",
            f'{PIXI}[dependencies]\nbzip2 = "*"\n[feature.gpu.dependencies]\ncmake = "*"\n'
            '[environments]\ngpu = ["gpu"]\n',
            "gpu",
        ),
        "files by hash, as a lock": (
            "pixi.lock",
            f"version: 6\nenvironments:\n  default:\n    channels:\n    - url: {HOME}/\n"
            "    packages:\n      linux-64:\n"
            f"      - conda: {BUILT}\npackages:\n- conda: {BUILT}\n  sha256: {SHA['beta']}\n  depends: []\n",
            SHA["beta"],
        ),
    },
    "explicit": {
        "conda packages": ("list.txt", f"# platform: linux-64\n@EXPLICIT\n{BUILT}#{SHA['beta'][:32]}\n", "bzip2"),
        "files by hash, as a lock": (
            "list.txt",
            f"# platform: linux-64\n@EXPLICIT\n{BUILT}#sha256:{SHA['beta']}\n",
            SHA["beta"],
        ),
    },
    "environment.yml": {
        "conda packages": ("environment.yml", f"{YAML}- bzip2=1\n", "bzip2"),
        "wheels": ("environment.yml", f"{YAML}- pip: ['it>=1']\n", 'it = ">=1"'),
        "extras": ("environment.yml", f"{YAML}- pip: ['it[x]']\n", 'extras = ["x"]'),
        "bounds of packages that are not requested": (
            "environment.yml",
            f"{YAML}- pip: [it, '-c bounds.txt']\n",
            'constraints = ["six<2"]',
        ),
        "requests of one platform": (
            "environment.yml",
            f"{YAML}- bzip2=1  # [win]\n",
            "[platform.win-64.dependencies]",
        ),
        "the index of one package": (
            "environment.yml",
            f"{YAML}- pip: ['--extra-index-url {INDEX}', 'torch==2.9.0+cu128']\n",
            'index = "pytorch-cu128"',
        ),
        "further indexes": ("environment.yml", f"{YAML}- pip: ['--extra-index-url {INDEX}', it]\n", f'url = "{INDEX}"'),
        "a wheel at an address": ("environment.yml", f"{YAML}- pip: ['{WHEEL}']\n", WHEEL),
        "a git repository": ("environment.yml", f"{YAML}- pip: ['git+{GIT}']\n", GIT),
        "a folder": ("environment.yml", f"{YAML}- pip: ['-e ./it']\n", 'path = "../it"'),
        "variables": ("environment.yml", f"{YAML}variables: {{A: '1'}}\n", 'A = "1"'),
    },
    "requirements.txt": {
        "wheels": ("requirements.txt", "it>=1\n", 'it = ">=1"'),
        "extras": ("requirements.txt", "it[x]\n", 'extras = ["x"]'),
        "requests of one platform": ("requirements.txt", f"it>=1\nsix ; {MARKER}\n", "six"),
        "the index of one package": (
            "requirements.txt",
            f"--extra-index-url {INDEX}\ntorch==2.9.0+cu128\n",
            'index = "pytorch-cu128"',
        ),
        "further indexes": ("requirements.txt", f"--extra-index-url {INDEX}\nit\n", f'url = "{INDEX}"'),
        "a wheel at an address": ("requirements.txt", f"{WHEEL}\n", WHEEL),
        "a git repository": ("requirements.txt", f"it @ git+{GIT}\n", GIT),
        "a folder": ("requirements.txt", "-e ./it\n", 'path = "../it"'),
        "bounds of packages that are not requested": ("requirements.txt", "it\n-c bounds.txt\n", "six"),
    },
    "pylock.toml": {
        "wheels": ("pylock.toml", f'{PYLOCK}version = "1.0"\n{FILES}', 'it = "1.0"'),
        "requests of one platform": (
            "pylock.toml",
            f'environments = ["sys_platform == \'win32\'"]\n{PYLOCK}version = "1.0"\n{FILES}',
            'platforms = ["win-64"]',
        ),
        "the index of one package": (
            "pylock.toml",
            f'{PYLOCK}version = "1.0"\nindex = "{INDEX}"\n{FILES}{OTHER}{OTHER.replace("six", "seven")}',
            'index = "pytorch-cu128"',
        ),
        "a wheel at an address": (
            "pylock.toml",
            f'{PYLOCK}archive = {{ url = "{WHEEL}", hashes = {{ sha256 = "{SHA["alpha"]}" }} }}\n',
            f'url = "{WHEEL}"',
        ),
        "a git repository": (
            "pylock.toml",
            f'{PYLOCK}vcs = {{ type = "git", url = "{GIT}", commit-id = "{SHA["alpha"][:40]}" }}\n',
            GIT,
        ),
        "a folder": ("pylock.toml", f'{PYLOCK}directory = {{ path = "it" }}\n', 'path = "../it"'),
        "files by hash, as a lock": ("pylock.toml", f'{PYLOCK}version = "1.0"\n{FILES}', SHA["alpha"]),
    },
    "uv.lock": {
        "wheels": ("uv.lock", UV + UV_IT % ', specifier = ">=1"', 'it = ">=1"'),
        "requests of one platform": (
            "uv.lock",
            UV + UV_IT % f' }}, {{ name = "six", marker = "{MARKER}"',
            "six",
        ),
        "the index of one package": ("uv.lock", UV + UV_IT % f', index = "{INDEX}"', 'index = "pytorch-cu128"'),
        "a git repository": (
            "uv.lock",
            UV
            + UV_IT.replace('registry = "https://index.example/simple"', f'git = "{GIT}#{SHA["alpha"][:40]}"')
            % f', git = "{GIT}"',
            GIT,
        ),
        "groups, as features": (
            "uv.lock",
            UV
            + UV_IT.replace("[package.metadata]", f"{UV_GROUP}[package.metadata]")
            % ' }, { name = "six", marker = "extra == \'gpu\'"'
            + UV_SIX,
            "[feature.gpu.pypi-dependencies]",
        ),
        "bounds of packages that are not requested": (
            "uv.lock",
            UV.replace("[[", '[manifest]\nconstraints = [{ name = "six", specifier = "<2" }]\n[[', 1) + UV_IT % "",
            "six",
        ),
        "files by hash, as a lock": ("uv.lock", UV + UV_IT % "", SHA["alpha"]),
    },
    "pyproject.toml": {
        "wheels": ("pyproject.toml", f'{PROJECT}dependencies = ["it>=1"]\n', 'it = ">=1"'),
        "extras": ("pyproject.toml", f'{PROJECT}dependencies = ["it[x]"]\n', 'extras = ["x"]'),
        "requests of one platform": ("pyproject.toml", f'{PROJECT}dependencies = ["it", "six; {MARKER}"]\n', "six"),
        "the index of one package": (
            "pyproject.toml",
            f'{PROJECT}dependencies = ["it"]\n[tool.uv.sources]\nit = {{ index = "a" }}\n'
            f'[[tool.uv.index]]\nname = "a"\nurl = "{INDEX}"\nexplicit = true\n',
            'index = "a"',
        ),
        "further indexes": (
            "pyproject.toml",
            f'{PROJECT}dependencies = ["it"]\n[[tool.uv.index]]\nurl = "{INDEX}"\n',
            f'url = "{INDEX}"',
        ),
        "a wheel at an address": (
            "pyproject.toml",
            f'{PROJECT}dependencies = ["it"]\n[tool.uv.sources]\nit = {{ url = "{WHEEL}" }}\n',
            WHEEL,
        ),
        "a git repository": (
            "pyproject.toml",
            f'{PROJECT}dependencies = ["it"]\n[tool.uv.sources]\nit = {{ git = "{GIT}", tag = "v1" }}\n',
            GIT,
        ),
        "a folder": (
            "pyproject.toml",
            f'{PROJECT}dependencies = ["it"]\n[tool.uv.sources]\nit = {{ path = "it", editable = true }}\n',
            'path = "../it"',
        ),
        "groups, as features": (
            "pyproject.toml",
            f'{PROJECT}dependencies = ["it"]\n[dependency-groups]\ntest = ["pytest"]\n',
            "[feature.test.pypi-dependencies]",
        ),
        "bounds of packages that are not requested": (
            "pyproject.toml",
            f'{PROJECT}dependencies = ["it"]\n[tool.uv]\noverride-dependencies = ["six==1"]\n',
            "six",
        ),
    },
    "Pipfile": {
        "wheels": ("Pipfile", '[packages]\nit = ">=1"\n', 'it = ">=1"'),
        "extras": ("Pipfile", '[packages]\nit = { version = "*", extras = ["x"] }\n', 'extras = ["x"]'),
        "requests of one platform": (
            "Pipfile",
            '[packages]\nit = "*"\nsix = { version = "*", sys_platform = "== \'win32\'" }\n',
            "six",
        ),
        "the index of one package": (
            "Pipfile",
            f'{SOURCES}[packages]\nit = {{ version = "*", index = "a" }}\n',
            'index = "a"',
        ),
        "further indexes": ("Pipfile", f'{SOURCES}[packages]\nit = "*"\n', INDEX),
        "a wheel at an address": ("Pipfile", f'[packages]\nit = {{ file = "{WHEEL}" }}\n', WHEEL),
        "a git repository": ("Pipfile", f'[packages]\nit = {{ git = "{GIT}", ref = "v1" }}\n', GIT),
        "a folder": ("Pipfile", '[packages]\nit = { path = "./it", editable = true }\n', 'path = "../it"'),
        "groups, as features": (
            "Pipfile",
            '[packages]\nit = "*"\n[dev-packages]\npytest = "*"\n',
            "[feature.dev.pypi-dependencies]",
        ),
    },
    "setup.cfg": {
        "wheels": ("setup.cfg", "[options]\ninstall_requires =\n    it>=1\n", 'it = ">=1"'),
        "extras": ("setup.cfg", "[options]\ninstall_requires = it[x]\n", 'extras = ["x"]'),
        "requests of one platform": ("setup.cfg", f"[options]\ninstall_requires =\n  it\n  six; {MARKER}\n", "six"),
        "further indexes": ("setup.cfg", f"[options]\ninstall_requires = it\ndependency_links = {INDEX}\n", INDEX),
        "a wheel at an address": ("setup.cfg", f"[options]\ninstall_requires =\n    it @ {WHEEL}\n", WHEEL),
        "a git repository": ("setup.cfg", f"[options]\ninstall_requires =\n    it @ git+{GIT}\n", GIT),
        "groups, as features": (
            "setup.cfg",
            "[options]\ninstall_requires = it\n[options.extras_require]\ntest = pytest\n",
            "[feature.test.pypi-dependencies]",
        ),
    },
}
SAMPLES["conda-lock"] = {
    kind: (
        "conda-lock.yml",
        f"version: 1\nmetadata:\n  content_hash: {{linux-64: {SHA['alpha']}}}\n\n"
        "  channels: [{url: conda-forge, used_env_vars: []}]\n"
        f"  platforms: [linux-64]\n  sources: []\npackage:\n- name: bzip2\n  version: 1.0.8\n  manager: conda\n"
        f"  platform: linux-64\n  dependencies: {{}}\n  url: {BUILT}\n"
        f"  hash: {{md5: {SHA['beta'][:32]}, sha256: {SHA['beta']}}}\n"
        "  category: main\n  optional: false\n",
        token,
    )
    for kind, token in (("conda packages", "bzip2"), ("files by hash, as a lock", SHA["beta"]))
}


def cell(sample: tuple[str, str, str]) -> str:
    """Import a sample: `kept` if the manifest or the lock has it, `named` if the import reports it."""
    name, text, token = sample
    files: Mapping[str, str] = {**FOLDER, name: text, "bounds.txt": "six<2\n"}
    for other in ("pixi.toml", "pixi.lock", "pyproject.toml", "locks/made.lock"):
        Path(other).unlink(missing_ok=True)
    for file, content in files.items():
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(content, encoding="utf-8")
    ended = call("import", name, "--name", "made", "--force", "--json")
    assert ended.status == 0, (text, ended.err)
    lock = Path("locks/made.lock")
    made = Path("manifests/made.toml").read_text() + (lock.read_text() if lock.exists() else "")
    if token in " ".join(made.split()) or token in made:
        return "kept"
    assert token in "\n".join([*ended.data["lost"], *ended.data["notes"]]), (name, token, ended.data, made)
    return "named"


def table() -> str:
    readable = [name for name in FORMATS if find_format(name).read]
    head = ["| of a file | " + " | ".join(f"`{name}`" for name in readable) + " |", "|---|" + "---|" * len(readable)]
    rows = []
    for kind in KINDS:
        cells = [cell(SAMPLES[name][kind]) if kind in SAMPLES[name] else "" for name in readable]
        rows.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join([*head, *rows]) + "\n"


@pytest.mark.usefixtures("empty_project")
def test_the_page_has_what_an_import_keeps_of_each_format() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = table()
    assert text.partition(BEGIN)[2].partition(END)[0] == found, f"the table of docs/interop.md is now\n{found}"
