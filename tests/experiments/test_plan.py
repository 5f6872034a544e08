"""Every number of every cell of the plan for both LLaDA models is the paper's, or our stated reading of it."""

import pytest

from unmask.experiments import find
from unmask.experiments.run import PlannedCell, plan
from unmask.experiments.setup import setup_for

MODELS = ["GSAI-ML/LLaDA-8B-Instruct", "GSAI-ML/LLaDA-1.5"]
SIZES = {"GSM8K": 1319, "MATH500": 500, "Countdown": 256, "HumanEval": 164, "MBPP": 500, "Sudoku": 256}
TABLE = ("GSM8K", "MATH500", "Countdown", "HumanEval")
ONE, THREE = (0,), (0, 1, 2)
# K, τ, block, steps as a function of L, n, seeds; rows per draw as a function of L
TEN = {
    "Low-confidence": (1, 0.0, 32, 1 / 2, 1, ONE, lambda l: l // 2),
    "Low-confidence + vote": (1, 0.4, 32, 1 / 2, 7, ONE, lambda l: 7 * l // 2),
    "Random": (1, 0.0, 32, 1 / 2, 1, THREE, lambda l: l // 2),
    "Random + vote": (1, 0.4, 32, 1 / 2, 7, ONE, lambda l: 7 * l // 2),
    "AR": (1, 0.4, 1, 1, 1, THREE, lambda l: l),
    "AR + vote": (1, 0.4, 1, 1, 3, ONE, lambda l: 3 * l),
    "AR + beam search": (5, 0.4, 1, 1, 1, ONE, lambda l: 5 * l + 25 * l),
    "OTS, all blocks": (5, 0.4, 32, 1 / 2, 1, ONE, lambda l: 5 * l // 2 + 25 * l // 32),
    "OTS, future masked": (5, 0.4, 32, 1 / 2, 1, ONE, lambda l: 5 * l // 2 + 25 * l // 32),
    "Order-Token Search": (5, 0.4, 32, 1 / 2, 1, ONE, lambda l: 5 * l // 2 + 25 * l // 32),
}
LENGTHS = (64, 128, 256, 512)


def cells(name: str, model: str, **changes) -> list[PlannedCell]:
    return plan(find(name), setup_for(model, **changes), "cuda")


def numbers(cell: PlannedCell) -> tuple:
    """K, τ, block, steps, n, seeds, problems, draws, rows; the wording and the metric are asserted here."""
    assert (cell.wording, cell.metric) == ("ours", "d1")
    settings = (cell.beams, cell.temperature, cell.block, cell.steps, cell.votes, cell.seeds)
    return (*settings, cell.problems, cell.draws, cell.forward_passes)


def expected(method: str, benchmark: str, length: int) -> tuple:
    beams, temperature, block, steps, votes, seeds, rows = TEN[method]
    counts = SIZES[benchmark], len(seeds), SIZES[benchmark] * len(seeds) * rows(length)
    return (beams, temperature, block, int(steps * length), votes, seeds, *counts)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("name", "benchmarks", "methods"),
    [
        ("table-1", TABLE, set(TEN)),
        ("sudoku", ("Sudoku",), set(TEN) - {"Random"}),
        ("figure-1d", ("MATH500",), {"Low-confidence", "Random", "Order-Token Search"}),
    ],
)
def test_tables_over_four_lengths(name: str, benchmarks: tuple, methods: set, model: str):
    planned = {(cell.benchmark, cell.method, cell.length): numbers(cell) for cell in cells(name, model)}
    wanted = [(each, method, length) for each in benchmarks for method in methods for length in LENGTHS]
    assert planned == {key: expected(key[1], key[0], key[2]) for key in wanted}


@pytest.mark.parametrize("model", MODELS)
def test_the_experiments_at_one_length(model: str):
    for cell in cells("table-2", model):
        n = SIZES[cell.benchmark]
        search = cell.method == "Order-Token Search"
        wanted = (5, 0.4, 32, 128, 1, ONE, n, 1, n * 840) if search else (3, 0.0, 32, 256, 1, ONE, n, 1)
        assert numbers(cell)[: len(wanted)] == wanted
        # K²·L, apart from the first steps, which start from one row
        assert search or 2295 * n < cell.forward_passes <= 2304 * n
        assert cell.length == 256
    temperature = [(1, 0.0, 32, 64, 68), (1, 0.4, 32, 64, 68), (5, 0.4, 32, 64, 420)]
    assert [(cell.length, *numbers(cell)) for cell in cells("temperature", model)] == [
        (128, k, t, block, steps, 1, ONE, 256, 1, 256 * rows) for k, t, block, steps, rows in temperature
    ]
    for cell in cells("block-size", model):
        block, steps = int(cell.method), 128 if cell.method == "1" else 64
        rows = 500 * (steps * 5 + 128 // block * 25)
        assert (cell.length, *numbers(cell)) == (128, 5, 0.4, block, steps, 1, ONE, 500, 1, rows)
    assert [cell.method for cell in cells("block-size", model)] == [str(2**power) for power in range(8)]


@pytest.mark.parametrize("model", MODELS)
def test_pass_at_k_nfe_and_wall_time(model: str):
    for cell in cells("pass-at-k", model):
        ar = cell.method == "AR"
        block, steps, n = 1 if ar else 256, 256 if ar else 128, SIZES[cell.benchmark]
        assert (cell.length, *numbers(cell)) == (256, 1, 0.8, block, steps, 1, ONE, n, 256, n * 256 * steps)
    benchmarks = [cell.benchmark for cell in cells("pass-at-k", model)]
    assert list(dict.fromkeys(benchmarks)) == ["GSM8K", "MATH500", "HumanEval", "MBPP"]
    scaling = [(cell.method, cell.length, *numbers(cell)) for cell in cells("nfe-scaling", model)]
    rows = {k: 256 * k + 16 * k * k for k in range(1, 7)}
    assert scaling[:6] == [
        (f"OTS, {k} beams", 512, k, 0.4, 32, 256, 1, ONE, 256, 1, 256 * rows[k]) for k in range(1, 7)
    ]
    assert scaling[6] == ("AR", 512, 1, 0.4, 1, 512, 1, ONE, 256, 4, 256 * 4 * 512)  # 2,112 rows ÷ 512
    assert scaling[7] == ("Random", 512, 1, 0.4, 32, 256, 1, ONE, 256, 8, 256 * 8 * 256)
    timed = {(cell.method, cell.length): numbers(cell) for cell in cells("wall-time", model)}
    for length in LENGTHS:
        search = timed["Order-Token Search, 4 beams", length]
        assert search == (4, 0.4, 32, length // 2, 1, ONE, 256, 1, 256 * (2 * length + length // 2))
        assert timed["One path", length] == (1, 0.0, 32, length // 2, 1, ONE, 256, 1, 256 * length // 2)
        for vote in ("Vote of 5, one after the other", "Vote of 5, as one batch"):
            assert timed[vote, length] == (1, 0.4, 32, length // 2, 5, ONE, 256, 1, 256 * 5 * length // 2)


@pytest.mark.parametrize("model", MODELS)
def test_the_first_cell_is_countdown_at_128_with_one_and_five_beams(model: str):
    assert [(cell.benchmark, cell.length, *numbers(cell)) for cell in cells("first-cell", model)] == [
        ("Countdown", 128, 1, 0.4, 32, 64, 1, ONE, 256, 1, 256 * 68),
        ("Countdown", 128, 5, 0.4, 32, 64, 1, ONE, 256, 1, 256 * 420),
    ]


def test_the_plan_names_the_wording():
    planned = plan(find("first-cell"), setup_for(MODELS[0]), "cuda", "folder/published.json")
    assert {cell.wording for cell in planned} == {"published.json"}
    assert {cell.wording for cell in plan(find("first-cell"), setup_for("tiny"), "cuda", "p.json")} == {"ours"}


def test_k_and_tau_can_be_chosen_and_votes_follow():
    chosen = {cell.method: cell for cell in cells("table-1", MODELS[0], beams=8, temperature=0.2, lengths=[64])}
    search, vote, ar = (chosen[name] for name in ("Order-Token Search", "Low-confidence + vote", "AR + vote"))
    assert (search.beams, search.temperature, vote.votes, vote.temperature, ar.votes) == (8, 0.2, 12, 0.2, 6)
    table_2 = cells("table-2", MODELS[0], beams=3)
    assert {cell.beams for cell in table_2} == {3}


@pytest.mark.parametrize("model", MODELS)
def test_the_grid_is_disclosed_for_every_benchmark_of_the_table(model: str):
    others = [cell for cell in cells("table-1", model, grid=True, lengths=[64]) if cell.benchmark.endswith("others")]
    assert {(cell.benchmark.split()[0], cell.task) for cell in others} == {
        ("GSM8K", "gsm8k(split=train)"),
        ("MATH500", "mini-math(split=train)"),
        ("Countdown", "countdown-d1(split=train)"),
        ("HumanEval", "mbpp(subset=train)"),
    }
    tried = {(cell.beams, cell.temperature) for cell in others}
    assert tried == {(k, t) for k in (3, 5, 8) for t in (0.2, 0.4, 0.6, 0.8, 1.0)}
    assert {cell.problems for cell in others} == {256}


def test_seeds_are_of_methods_that_draw():
    setup = setup_for("tiny", seeds=3)
    seeds = {cell.method: cell.seeds for cell in plan(find("table-2"), setup, "cuda")}
    assert seeds == {"Token search": ONE, "Order search": ONE, "Order-Token Search": THREE}
    assert {cell.draws for cell in plan(find("pass-at-k"), setup, "cuda")} == {64}
    assert len(find("case-study").parts(setup)) == 1
    table = {cell.method: cell.seeds for cell in plan(find("table-1"), setup, "cuda")}
    assert {method for method, each in table.items() if each == ONE} == {"Low-confidence"}


@pytest.mark.parametrize("model", MODELS)
def test_the_case_study_is_a_share_over_32_seeds(model: str):
    path, search = cells("case-study", model)
    assert (path.length, path.problems, path.draws, path.beams, path.temperature) == (128, 1, 32, 1, 0.0)
    assert (search.length, search.problems, search.draws, search.beams, search.temperature) == (128, 1, 32, 5, 0.4)
