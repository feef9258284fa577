"""The toolchain that a PyTorch checkout needs, the same on every machine."""

__version__ = "0.1.0"
