"""How archives are packed: one sibling a family of formats, each of which hands its entries to a `Taker`."""
