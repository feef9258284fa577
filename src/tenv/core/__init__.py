"""What all other folders share, and what knows nothing of tenv: files, processes, versions, errors."""
