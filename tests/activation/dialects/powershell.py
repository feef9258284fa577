from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    words=lambda _, program, file: [program, "-NoProfile", "-File", str(file)],
    ending=".ps1",
    quoted=dict(
        zip(
            AWKWARD,
            (
                "'a folder'",
                "'it''s'",
                "'so \"quoted\"'",
                "'$HOME `x` %PATH%'",
                "'\\ ;&|<>()'",
                '"$([char]233)"',
            ),
            strict=True,
        )
    ),
    append=lambda folder: f"$env:PATH += ':{folder}'",
    hook_line=lambda _: "tenv hook powershell | Out-String | Invoke-Expression",
    never_run={"powershell": "no registry that is reached has it: shells/test_powershell.py reads its scripts"},
)
