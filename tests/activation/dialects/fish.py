from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    words=lambda _, program, file: [program, "--no-config", str(file)],
    ending=".fish",
    quoted=dict(
        zip(
            AWKWARD,
            (
                "'a folder'",
                "'it\\'s'",
                "'so \"quoted\"'",
                "'$HOME `x` %PATH%'",
                "'\\\\ ;&|<>()'",
                "'é'",
            ),
            strict=True,
        )
    ),
    append=lambda folder: f"set -gx PATH $PATH {folder}",
    hook_line=lambda _: "tenv hook fish | source",
    installed_by={"fish": "fish"},
)
