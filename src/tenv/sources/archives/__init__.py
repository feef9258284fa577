"""Files outside package managers: NVIDIA's redist archives, and files by URL and sha256."""
