from tests.support.dialect import AWKWARD, Dialect

DIALECT = Dialect(
    quoted=dict(
        zip(
            AWKWARD,
            (
                '"a folder"',
                '"it\'s"',
                '"so \\"quoted\\""',
                '"$HOME `x` %PATH%"',
                '"\\\\ ;&|<>()"',
                '"é"',
            ),
            strict=True,
        )
    ),
    hook_line=lambda _: "tenv hook nushell | save --force ($nu.user-autoload-dirs.0 | path join tenv.nu)",
    never_run={"nushell": "its program is `nu`, and it reads no text at run time: tests/activation/shells runs it"},
)
