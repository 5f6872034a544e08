"""The canvas: ragged prompts, writes that return new canvases, rows that fork and are put back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unmask.core import Canvas, Rows
from unmask.errors import UnmaskError
from unmask.models.load import load

MASK = 9


def canvas(*prompts: list[int], length: int = 3, infill: bool = False) -> Canvas:
    return Canvas.blank(prompts, length, MASK, infill=infill)


def test_prompts_are_padded_on_the_left_so_that_answers_line_up():
    made = canvas([1, 2, 3], [4])
    assert made.tokens.tolist() == [[1, 2, 3, MASK, MASK, MASK], [0, 0, 4, MASK, MASK, MASK]]
    assert (made.pad.tolist(), made.start, made.ragged) == ([0, 2], 3, True)
    assert made.real.tolist()[1] == [False, False, True, True, True, True]
    assert made.problem.tolist() == [0, 1]
    assert made.places(made.slots).tolist() == [[3, 4, 5], [1, 2, 3]]  # from a row's own first token


def test_open_columns_come_left_to_right_and_before_written_ones():
    made = canvas([1, 2, 3], [4], length=4)
    rows, at = Rows.start(made, load("toy-chain").denoiser), made.slots
    rows = rows.write(at, torch.full_like(at, 5), torch.tensor([[0, 1, 0, 0], [1, 0, 1, 1]]).bool(), 1, at * 0.0)
    assert rows.open(slice(0, 4), 1).tolist() == [[3], [4]]
    assert rows.open(slice(0, 4), 3).tolist() == [[3, 5, 6], [4, 3, 5]]


def test_padding_is_never_masked_even_where_the_padding_token_is_the_mask():
    made = Canvas.blank([[1, 2, 3], [4]], 2, 0)
    assert made.tokens[1].tolist() == [0, 0, 4, 0, 0]
    assert made.masked[1].tolist() == [False, False, False, True, True]
    assert made.slots.tolist() == [[3, 4], [3, 4]]


def test_a_write_returns_a_new_canvas_and_touches_only_what_it_says():
    before = canvas([1], length=3)
    at = before.slots
    where = torch.tensor([[True, False, True]])
    after = before.write(at, torch.tensor([[5, 6, 7]]), where, 4, torch.tensor([[-0.5, -1.0, -2.0]]))
    assert before.tokens.tolist() == [[1, MASK, MASK, MASK]]
    assert after.tokens.tolist() == [[1, 5, MASK, 7]]
    assert after.order.tolist() == [[0, 4, 0, 4]]
    assert after.logp.tolist() == [[0.0, -0.5, 0.0, -2.0]]
    assert not after.done
    assert after.slots.tolist() == [[2]]


def test_a_row_may_count_its_own_steps():
    before = canvas([1], [2], length=1)
    everywhere = torch.ones(2, 1, dtype=torch.bool)
    after = before.write(before.slots, before.slots, everywhere, torch.tensor([3, 5]), torch.zeros(2, 1))
    assert after.order[:, 1].tolist() == [3, 5]


def test_remasking_undoes_a_write():
    before = canvas([1], length=2)
    everywhere = torch.ones(1, 2, dtype=torch.bool)
    written = before.write(before.slots, torch.tensor([[5, 6]]), everywhere, 1, torch.tensor([[-1.0, -1.0]]))
    again = written.remask(torch.tensor([[1, 2]]))
    for name in ("tokens", "order", "logp"):
        assert torch.equal(getattr(again, name), getattr(before, name))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_rows_fork_prune_and_reorder(index: list[int]):
    made = canvas([1, 2], [3], [4, 5])
    rows = made.rows(torch.tensor(index))
    assert rows.problem.tolist() == index
    assert torch.equal(rows.tokens, made.tokens[index])
    assert rows.pad.tolist() == [made.pad.tolist()[i] for i in index]


def test_changed_rows_are_put_back_where_they_came_from():
    made = canvas([1], [2], [3], length=1)
    some = torch.tensor([2, 0])
    part = made.rows(some)
    part = part.write(part.slots, torch.tensor([[7], [8]]), torch.ones(2, 1, dtype=torch.bool), 1, torch.zeros(2, 1))
    assert made.put(some, part).tokens.tolist() == [[1, 8], [2, MASK], [3, 7]]


def test_a_column_may_be_named_twice():
    made = canvas([1], length=2)
    at = torch.tensor([[1, 2, 2]])
    token = torch.tensor([[5, 6, 6]])
    for where in ([True, True, False], [True, False, True]):
        after = made.write(at, token, torch.tensor([where]), 1, torch.zeros(1, 3))
        assert after.tokens.tolist() == [[1, 5, 6]]


def test_masks_inside_a_prompt_are_slots_and_rows_need_equally_many():
    assert canvas([1, MASK, 2], length=0, infill=True).slots.tolist() == [[1]]
    with pytest.raises(UnmaskError, match=r"equally many masks, not \[3, 4\]"):
        _ = canvas([1, MASK], [2], infill=True).slots


@pytest.mark.parametrize(
    ("prompt", "length", "sentence"),
    [
        ([], 3, "the prompt is empty: give at least one token"),
        ([1], 0, "length must be at least 1, got 0"),
        ([1], -2, "length must be at least 1, got -2"),
        ([1, MASK], 3, "the prompt contains the mask token (id 9) 1 times: use fill() to have masks filled in"),
    ],
)
def test_prompts_that_cannot_be_decoded_are_refused(prompt: list[int], length: int, sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        canvas(prompt, length=length)
    assert str(refusal.value) == sentence
