"""Readers of archive formats: one module per family, each passes its entries to a `Taker`."""
