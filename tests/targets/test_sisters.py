"""On a platform that a target lacks, the message names the target of the same CUDA that has it."""

from tenv.targets.search import find_places, sister_hint
from tests.support.each import each
from tests.support.projects import Project, call


@each(
    "name, platform, named",
    [
        ("cuda124", "win-64", "`cuda124-archives`"),
        ("cuda118", "linux-aarch64", "`cuda118-archives`"),
        ("cuda129", "win-64", "`cuda129-archives`"),
        ("cuda121-system", "win-64", "`cuda121-archives`"),
        ("cuda117", "linux-aarch64", ""),
        ("cuda102-win", "linux-64", ""),
        ("cpu-1.10", "win-64", ""),
    ],
)
def test_the_built_in_target_of_the_same_cuda_is_named(name: str, platform: str, named: str) -> None:
    manifest = find_places().outside().find(name).manifest
    assert sister_hint(manifest, platform) == (f"the same CUDA on {platform}: {named}" if named else "")


def test_the_message_of_a_command_names_it(project: Project) -> None:
    ended = call("export", "explicit", "cuda124", "--platform", "win-64")
    assert ended.status == 2
    assert "hint: the same CUDA on win-64: `cuda124-archives`\n" in ended.err
