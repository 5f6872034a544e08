"""Which position, which token, what score, which row: pure functions of beliefs."""
