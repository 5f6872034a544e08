"""The nouns everything stands on."""
