"""Judgements: one topic a file, each rule a pure function of what is wanted, what is there and the facts."""
