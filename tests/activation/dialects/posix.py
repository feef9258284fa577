from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    quoted=dict(
        zip(
            AWKWARD,
            ("'a folder'", """'it'"'"'s'""", """'so "quoted"'""", "'$HOME `x` %PATH%'", "'\\ ;&|<>()'", "'é'"),
            strict=True,
        )
    ),
    hook_line=lambda name: f'eval "$(tenv hook {name})"',
    installed_by={"zsh": "zsh", "dash": "dash", "ksh": "ksh93u+m", "mksh": "mksh"},
)
