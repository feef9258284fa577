"""What a target takes from the machine (``[system]``): found, checked, fingerprinted, and never installed."""
