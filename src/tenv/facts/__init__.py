"""What fits with what: tables of numbers, each row with its source, and one typed loader a table."""
