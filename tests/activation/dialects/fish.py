from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
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
    hook_line=lambda _: "tenv hook fish | source",
    installed_by={"fish": "fish"},
)
