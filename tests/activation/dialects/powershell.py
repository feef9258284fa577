from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
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
    hook_line=lambda _: "tenv hook powershell | Out-String | Invoke-Expression",
    never_run={"powershell": "no registry that is reached has it: shells/test_powershell.py reads its scripts"},
)
