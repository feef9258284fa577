"""What this machine offers: one probe a file, each a pure parser and a `probe` that reads the machine."""
