"""Decoders: one algorithm a file."""
