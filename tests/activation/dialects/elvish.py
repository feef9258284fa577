from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    words=lambda _, program, file: [program, "-norc", str(file)],
    ending=".elv",
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
    append=lambda folder: f"set-env PATH $E:PATH':{folder}'",
    hook_line=lambda _: "var tenv~ = { }; eval &on-end={|ns| set tenv~ = $ns[tenv~] } (e:tenv hook elvish | slurp)",
    installed_by={"elvish": "elvish"},
)
