"""PowerShell's scripts as text: read by a grammar of PowerShell, since no PowerShell runs where the tests do.

The grammar is a package of npm, which CI installs; without it these tests are skipped.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tenv.activation.shells import powershell
from tests.support.projects import Project, call
from tests.support.shells import HOSTILE

PROGRAM = r"""
const { Parser, Language } = require("web-tree-sitter"), fs = require("fs");
(async () => {
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(require.resolve("tree-sitter-powershell/tree-sitter-powershell.wasm")));
  const faults = [], literals = [], expandable = [], commands = [];
  const walk = (node) => {
    if (node.isError || node.isMissing) faults.push([node.startPosition.row + 1, node.text.slice(0, 60)]);
    if (node.type === "verbatim_string_characters") literals.push(node.text);
    if (node.type === "expandable_string_literal") expandable.push(node.text);
    if (node.type === "command_name") commands.push(node.text);
    node.children.forEach(walk);
  };
  walk(parser.parse(fs.readFileSync(process.argv[2], "utf8").replace("\ufeff", "")).rootNode);
  console.log(JSON.stringify({ faults, literals, expandable, commands }));
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


@parsed
def test_hostile_values_are_one_word_each(tmp_path: Path) -> None:
    values = [*CAN_HOLD, "\u2018typographic\u2019", "C:\\Program Files (x86)\\x;D:\\", '\u201cquoted\u201d $x `n "é"']
    found = read(tmp_path, powershell.render_edits({f"H_{i}": value for i, value in enumerate(values)}))
    assert found["faults"] == []
    assert found["commands"].count("Set-Item") == len(values)
    assert {powershell.quote(value) for value in values} <= {*found["literals"], *found["expandable"]}


def test_a_literal_says_every_value() -> None:
    """Read literals by PowerShell's rules for strings (about_Quoting_Rules, about_Special_Characters)."""
    for value in [*CAN_HOLD, "\u2018typographic\u2019", "\U0001f600 é", '"$x" `n']:
        text = powershell.quote(value)
        assert text.isascii()
        if text.startswith("'"):
            read_back = text[1:-1].replace("''", "'")
        else:
            units = re.sub(r"\$\(\[char\](\d+)\)", lambda match: chr(int(match[1])), text[1:-1])
            read_back = re.sub(r'`(["$`])', r"\1", units)
        assert read_back.encode("utf-16-be", "surrogatepass") == value.encode("utf-16-be"), value


@parsed
def test_every_script_is_whole(tmp_path: Path) -> None:
    hook = powershell.render_hook(["/a b/py'thon", "-m", "tenv"])
    for text in (powershell.render_edits({"PATH": "/x:/y", "GONE": None}), powershell.render_edits({}), hook):
        assert read(tmp_path, text)["faults"] == []


def test_a_variable_that_is_unset_is_removed_and_the_prompt_shows_the_target() -> None:
    text = powershell.render_edits({"GONE": None})
    assert "Remove-Item -LiteralPath 'Env:GONE'" in text
    assert "function global:prompt" in text


def test_a_value_that_is_no_utf_8_is_refused_by_name(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/a\udce9:/usr/bin:/bin")
    for name in ("powershell", "nushell"):
        err = created.fails(2, "usage", "activate", "tiny", "--shell", name)
        assert f"{name} can't hold the value of " in err
        assert "_TENV_SAVED_1_PATH" in err


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
