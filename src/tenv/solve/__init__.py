"""Select the files of a lock."""
