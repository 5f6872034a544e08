"""How many floating-point operations a decoding's products take; norms, rotations and draws are not counted."""

from __future__ import annotations

from unmask.models.transformer import Shape


def trunk_flops(shape: Shape, positions: int, looks: int) -> int:
    """Of the layers: two for each weight and position, and of attention four for each pair it compares and unit."""
    weights = 2 * shape.width * (shape.width + shape.kv_width) + 3 * shape.width * shape.hidden
    return shape.layers * (2 * positions * weights + 4 * looks * shape.width)


def head_flops(shape: Shape, asked: int) -> int:
    return 2 * asked * shape.width * shape.vocab
