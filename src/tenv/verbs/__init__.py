"""One file a verb: each a short list of named steps that prints nothing and returns what happened."""
