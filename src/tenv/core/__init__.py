"""Code without knowledge of tenv's domain, shared by all folders: files, processes, versions, errors."""
