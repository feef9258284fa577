"""Read the log of a build and find the cause of a failure."""
