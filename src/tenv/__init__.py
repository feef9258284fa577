"""The toolchain that a PyTorch checkout needs, on the machine at hand, the same on every machine."""

__version__ = "0.1.0"
