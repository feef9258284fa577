"""The ``[system]`` source: resolves tools from the system, checks and fingerprints them, and installs nothing."""
