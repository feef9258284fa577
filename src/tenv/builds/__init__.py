"""The steps of `tenv build`: from a PyTorch checkout to a package that imports."""
