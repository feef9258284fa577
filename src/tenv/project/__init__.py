"""What every verb is given: the caller's environment, its folders and its settings."""
