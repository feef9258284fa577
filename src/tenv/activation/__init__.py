"""What activating an environment changes, as data, and as text for each shell."""
