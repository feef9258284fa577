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
                "'é'",
            ),
            strict=True,
        )
    ),
    hook_line=lambda _: "var tenv~ = { }; eval &on-end={|ns| set tenv~ = $ns[tenv~] } (e:tenv hook elvish | slurp)",
    installed_by={"elvish": "elvish"},
)
