from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    words=lambda _, program, file: [program, "/c", str(file)],
    ending=".bat",
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
    append=lambda folder: f'set "PATH=%PATH%;{folder}"',
    hook_line=lambda _: "tenv hook cmd >FOLDER\\tenv.bat",
    never_run={"cmd": "wine64 runs it, and not as a program on PATH: shells/test_cmd.py"},
)
