from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    quoted=dict(
        zip(
            AWKWARD,
            (
                "'a folder'",
                '"it\'s"',
                "'so \"quoted\"'",
                "'$HOME `x` %PATH%'",
                "'\\\\ ;&|<>()'",
                "'\\xe9'",
            ),
            strict=True,
        )
    ),
    hook_line=lambda _: "execx($(tenv hook xonsh))",
    installed_by={"xonsh": "xonsh"},
)
