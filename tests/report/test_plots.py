"""Plots that can be read: colours that stand out on both grounds of the page, and ticks as in the tables."""

import re
from itertools import pairwise

import pytest

from tests.report.examples import grid, record, run
from unmask.report.plots import COLOURS, draw
from unmask.report.run_report import run_report
from unmask.runs.record import Counts

LUMA = (0.213, 0.715, 0.072)


def _channels(colour: str) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def _inverted(colour: list[float]) -> list[float]:
    """As page.css shows it in the dark: invert(.91) hue-rotate(180deg)."""
    channels = [0.91 - 0.82 * channel for channel in colour]
    grey = sum(weight * channel for weight, channel in zip(LUMA, channels, strict=True))
    return [min(max(2 * grey - channel, 0.0), 1.0) for channel in channels]


def _luminance(colour: list[float]) -> float:
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True)) + 0.05


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_stand_out_on_white_and_in_the_dark(colour: str):
    white, ink = _channels("#ffffff"), _channels(colour)
    assert _luminance(white) / _luminance(ink) >= 3
    assert _luminance(_inverted(ink)) / _luminance(_inverted(white)) >= 3


def test_ticks_are_whole_rows_as_in_the_tables():
    rows = {"low-confidence": 32, "adaptive": 21}
    records = [
        record(spec, problem=n, cost=Counts(count + (n == 0), 1, 1)) for spec, count in rows.items() for n in range(24)
    ]
    (plot,) = run_report([run(records)]).plots
    assert {point.x for _, points in plot.lines for point in points} == {32 + 1 / 24, 21 + 1 / 24}
    ticks = re.findall(r"<!-- ([\d.]+) -->", draw(plot, "svg").decode())
    assert {"21", "32"} < set(ticks)
    assert not [tick for tick in ticks if "." in tick]


def test_the_baseline_is_the_first_row_and_the_others_go_by_cost():
    specs = ["low-confidence", "entropy", "adaptive", "ots(beams=2)"]
    records = grid(specs, [64], problems=3) + grid(specs, [64], problems=3, of="mini-gsm")
    for against in ("low-confidence", "order-token-search(beams=2)"):
        report = run_report([run(records)], against)
        tables = [table for table in report.tables if table.kind in ("accuracy", "average")]
        assert [table.rows[0][0].text for table in tables] == [against] * 3
        for group in report.groups:
            costs = [series.mean_cost() for series in group.series if series.label != against]
            assert all(first <= second for first, second in pairwise(costs))
