"""Models: one family a file; oddities stop here."""
