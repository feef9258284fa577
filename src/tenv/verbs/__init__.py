"""One file per verb. A verb prints nothing and returns its result as a value."""
