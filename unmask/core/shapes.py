"""Shapes as types. Axes: `row`, `pos`, `vocab`; `at` for asked positions; `problem`, `beam` where rows are folded."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

Tokens = Int[Tensor, "row pos"]
Columns = Int[Tensor, "row at"]  # which positions of each row, as column numbers
PerRow = Int[Tensor, " row"]
Steps = int | PerRow  # the number of a step: one for all rows, or each row its own
Score = Float[Tensor, " row"]
AtTokens = Int[Tensor, "row at"]
AtFloat = Float[Tensor, "row at"]
AtBool = Bool[Tensor, "row at"]

__all__ = ["AtBool", "AtFloat", "AtTokens", "Bool", "Columns", "Float", "Int", "PerRow", "Score", "Steps", "Tokens"]
