from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    quoted=dict(
        zip(
            AWKWARD,
            (
                '^"VALUE=a folder^"',
                '^"VALUE=it\'s^"',
                '^"VALUE=so ^"quoted^"^"',
                '^"VALUE=$HOME `x` %%PATH%%^"',
                '^"VALUE=\\ ;^&^|^<^>^(^)^"',
                '^"VALUE=é^"',
            ),
            strict=True,
        )
    ),
    hook_line=lambda _: "tenv hook cmd >FOLDER\\tenv.bat",
    never_run={"cmd": "wine64 runs it, and not as a program on PATH: shells/test_cmd.py"},
)
