"""Compatibility tables: each row has its source, and each table a typed reader."""
