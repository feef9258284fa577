"""py-rattler under our own names, types and errors: the one importer of ``rattler``.

Its interface changes between minor versions, so that everything the rest of tenv needs of it stands here.
"""
