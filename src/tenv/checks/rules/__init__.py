"""Rules, one topic per file. A rule is a pure function of a target, a host and the facts."""
