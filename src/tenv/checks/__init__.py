"""Apply the rules to a target on a host and derive the verdicts for build and run."""
