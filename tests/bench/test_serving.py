"""`unmask bench --serve`: what it counts."""

from __future__ import annotations

import tests.serve.conftest  # noqa: F401  lets shapes be checked in the coroutines of an engine
import unmask
from unmask.bench.serving import Workload, table
from unmask.bench.subject import Subject


def test_every_client_is_answered_as_often_as_it_asks():
    model = unmask.load("toy-transformer")
    lines: list[str] = []
    rows = Workload(Subject.of_model(model), prompt=4, length=4, each=2, show=lines.append).measure(["ar"], [1, 3])
    assert [(row["clients"], row["requests"]) for row in rows] == [(0, 2), (1, 2), (3, 6)]
    assert rows[0]["gain"] == 1
    assert [row["mean_batch"] for row in rows[:2]] == [None, 1]
    assert 1 < rows[2]["mean_batch"] <= 3
    for row in rows:
        assert row["tokens_per_second"] == row["requests_per_second"] * 4
    assert len(table(rows, "toy").rows) == len(lines) == 3
