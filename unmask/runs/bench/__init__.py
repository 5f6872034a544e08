"""Benchmarking: the plain loop and ours in one run, in turns, with what each computed."""
