"""Other people's harnesses: models of this package under their names."""
