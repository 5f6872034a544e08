"""Pages that show decoding runs: a trace in one file, and the playground of a server."""
