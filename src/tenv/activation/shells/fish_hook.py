"""The functions that the hook of fish defines; ``@NAME@`` is filled in by `tenv.activation.shells.fish`.

A stored script is sourced only where the prefix carries the mark of this user for its very path
(`tenv.environment.marks`); all else is left to ``tenv activate``, which decides and explains.
"""

__all__ = ["HOOK"]

HOOK = r"""
function tenv
    if test "$argv[1]" = activate -a (count $argv) -eq 2; and not string match -qr -- '^-|/' $argv[2]
        _tenv_stored $argv[2]
    else if test "$argv[1]" = activate
        _tenv_ask $argv[2..-1]
    else if test "$argv[1]" = deactivate -a (count $argv) -eq 1
@DEACTIVATE@
    else
        command @PROGRAM@ $argv
    end
end
function _tenv_ask # let tenv itself find the environment, or say what is wrong
    set -l script (command @PROGRAM@ activate --shell fish $argv)
    or return
    if string match -q "source *" -- $script[1]
        eval $script[1]
    else
        printf '%s\n' $script # help, or JSON
    end
end
function _tenv_stored # TARGET: source its stored script, where the environment is ready
    set -l folder $PWD
    while test -O "$folder/"; and not _tenv_is_project "$folder"; and test -n "$folder"
        set folder (string replace -r '/[^/]*$' '' -- $folder)
    end
    set -l prefix @DATA@/$argv[1]
    if _tenv_is_project "$folder"
        set prefix $folder/.tenv/envs/$argv[1]
        if test -L $folder/.tenv -o -L $folder/.tenv/envs -o ! -O "$folder/"
            set prefix ""
        end
    end
    if test -n "$prefix"; and _tenv_is_ready $prefix; and _tenv_noted $prefix/@META@/@NOTE@
        source $prefix/@META@/@SCRIPT@
    else
        _tenv_ask $argv[1]
    end
end
function _tenv_is_project # FOLDER
    set -l found $argv[1]/manifests/*.toml
    test -f $argv[1]/tenv.toml; or test (count $found) -gt 0
end
function _tenv_is_ready # PREFIX: whether it is ready, carries the user's mark at this very path, and is as that says
    set -l meta $argv[1]/@META@
    test -O $argv[1] -a ! -L $argv[1] -a -f $meta/state.json -a -f $argv[1]/@ID@ -a -f $meta/@SCRIPT@; or return 1
    read -l state <$meta/state.json
    read -l id <$argv[1]/@ID@
    if not string match -q '@READY@*' -- $state; or not string match -qr '^[0-9a-f]+$' -- $id
        return 1
    end
    set -l mark @MARKS@/$id
    if not test -f $mark; or test $meta/@SCRIPT@ -nt $mark # changed since
        return 1
    end
    set -l lines
    while read -l line
        set -a lines $line
    end <$mark
    test "$lines[1]" -ef $argv[1]; or return 1
    for name in $lines[4..-1]
        set -l file $argv[1]/$name
        if string match -qr '^@META@/|[.]cfg$' $name
            test -f $file -a ! $file -nt $mark; or return 1
        else
            test -x $file; or return 1
        end
    end
end
function _tenv_noted # NOTE: whether the lock is the one that tenv looked at last; prints what it found then
    test -f $argv[1]; or return 1
    set -l note # the lock, what to say of it, its size, and the files that would count more
    while read -l line
        set -a note "$line"
    end <$argv[1]
    test (count $note) -ge 3; and test -f $note[1]; or return 1
    command test $note[1] -nt $argv[1] -o $note[1] -ot $argv[1]; and return 1
    test (string trim (command wc -c <$note[1])) = $note[3]; or return 1
    for near in $note[4..-1]
        test -e $near; and return 1
    end
    test -n "$note[2]"; or return 0
    test -z "$TENV_LOCKED"; or return 1
    printf 'tenv: %s\n' $note[2] >&2
end
"""
