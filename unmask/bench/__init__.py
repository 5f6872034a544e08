"""The benchmark: the published loops and this package's decoders on the same weights and prompts, measured in turn."""
