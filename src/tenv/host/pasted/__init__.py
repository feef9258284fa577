"""What people paste about a machine, read as a host: a file a layout, `layouts` their table, `reader` what counts."""
