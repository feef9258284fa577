"""The changes of an activation as data, and as a script for each shell."""
