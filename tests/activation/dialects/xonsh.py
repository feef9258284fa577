from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    words=lambda _, program, file: [program, "--no-rc", str(file)],
    ending=".xsh",
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
    append=lambda folder: f"$PATH.append({folder!r})",
    hook_line=lambda _: "execx($(tenv hook xonsh))",
    installed_by={"xonsh": "xonsh"},
)
