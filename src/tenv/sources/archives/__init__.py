"""Files outside any package manager: NVIDIA's redist archives, and files named by URL and sha256."""
