"""PowerShell's scripts as text: read by a grammar of PowerShell, since no PowerShell runs where the tests do.

The grammar is a package of npm, which CI installs; without it these tests are skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tenv.activation.changes import Action, Activation, Change, Watch
from tenv.activation.shells import powershell
from tests.support.projects import call
from tests.support.shells import HOSTILE

PROGRAM = r"""
const { Parser, Language } = require("web-tree-sitter"), fs = require("fs");
(async () => {
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(require.resolve("tree-sitter-powershell/tree-sitter-powershell.wasm")));
  const faults = [], literals = [], commands = [];
  const walk = (node) => {
    if (node.isError || node.isMissing) faults.push([node.startPosition.row + 1, node.text.slice(0, 60)]);
    if (node.type === "verbatim_string_characters") literals.push(node.text);
    if (node.type === "command_name") commands.push(node.text);
    node.children.forEach(walk);
  };
  walk(parser.parse(fs.readFileSync(process.argv[2], "utf8").replace("\ufeff", "")).rootNode);
  console.log(JSON.stringify({ faults, literals, commands }));
})();
"""
NODE = shutil.which("node")
MODULES = next((path for path in os.environ.get("NODE_PATH", "").split(os.pathsep) if path), None)
parsed = pytest.mark.skipif(
    not NODE or not MODULES or not Path(MODULES, "tree-sitter-powershell").exists(), reason="needs npm's grammar"
)
CAN_HOLD = [value for value in HOSTILE if powershell.holds(value)]


def read(folder: Path, text: str) -> Any:
    (folder / "script.ps1").write_text(text, newline="")
    (folder / "read.cjs").write_text(PROGRAM)
    # Without the second compiler of the engine, which takes a quarter of a minute for this grammar.
    words = [str(NODE), "--liftoff-only", str(folder / "read.cjs"), str(folder / "script.ps1")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def activation(*changes: Change) -> Activation:
    watch = Watch((("/a/it's", "/b"), ("/c", "/d")), "warning: it's \u2019new\u2018")
    return Activation("cuda130", Path("/an env's folder"), changes, (watch,))


@parsed
def test_hostile_values_are_literals_of_one_word(tmp_path: Path) -> None:
    values = [*CAN_HOLD, "\u2018typographic\u2019", "C:\\Program Files (x86)\\x;D:\\"]
    changes = [Change(f"H_{i}", Action.SET, value, "") for i, value in enumerate(values)]
    found = read(tmp_path, powershell.render_activation(activation(*changes)))
    assert found["faults"] == []
    quoted = {text[1:-1] for text in found["literals"]}
    assert {powershell.quote(value)[1:-1] for value in values} <= quoted
    assert found["commands"].count("Update-TenvSet") == len(values)


@parsed
def test_every_script_is_whole(tmp_path: Path) -> None:
    changes = (
        Change("PATH", Action.PREPEND, "/x:/y", ""),
        Change("FLAGS", Action.APPEND, "-x", "", " "),
        Change("GONE", Action.UNSET, "", ""),
    )
    hook = powershell.render_hook(["/a b/py'thon", "-m", "tenv"], Path("/da'ta"))
    for text in (powershell.render_activation(activation(*changes)), powershell.render_deactivation(), hook):
        assert read(tmp_path, text)["faults"] == []


def test_what_is_added_says_its_side_and_separator() -> None:
    text = powershell.render_activation(activation(Change("FLAGS", Action.APPEND, "-x", "", " ")))
    assert "Update-TenvAppend 'FLAGS' ' -x'\n" in text
    assert text.startswith("\ufeff")


def test_a_value_that_is_no_utf_8_is_refused_by_name() -> None:
    text = powershell.render_activation(activation(Change("BAD", Action.SET, "\udcff", "")))
    assert "can''t hold the value of BAD" in text
    assert "Update-Tenv" not in text


@parsed
def test_completion_is_whole_and_its_script_one_literal(tmp_path: Path) -> None:
    text = call("completion", "powershell").out
    found = read(tmp_path, text)
    assert found["faults"] == []
    assert {"Register-ArgumentCompleter", "sh"} <= set(found["commands"])
    (core,) = (literal for literal in found["literals"] if "_tenv_candidates()" in literal)
    script = core[1:-1].replace("''", "'") + "'export' ''"
    done = subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, check=True)
    assert {"pixi", "dockerfile"} <= set(done.stdout.splitlines())
