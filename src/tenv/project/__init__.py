"""The context of a verb: the project, the caller's environment variables, the user's settings."""
