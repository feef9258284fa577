"""What was built, and where it runs: the libraries of a torch, a wheel or a folder."""
