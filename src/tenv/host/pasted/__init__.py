"""Read pasted descriptions of a machine as a host: one file per layout, the table `layouts`, and the `reader`."""
