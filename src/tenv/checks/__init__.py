"""Whether a target can be built and run on a machine: the rules, and the verdicts made of what they find."""
