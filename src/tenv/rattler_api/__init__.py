"""A wrapper of py-rattler with tenv's names, types and errors; the only importer of ``rattler``.

Its interface changes between minor versions, so that all uses of it are here.
"""
