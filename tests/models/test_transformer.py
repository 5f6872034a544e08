"""The native forward against the same weights in Hugging Face's library, and a row against its batch."""

from pathlib import Path

import pytest
import torch

from tests.models.folders import FAMILIES, canvas_of, folder_of, logits_at, some_shape
from tests.models.references import library_logits, reference
from unmask.core import Canvas
from unmask.models.load import load_folder
from unmask.models.network.kv_cache import union
from unmask.models.network.transformer import lines, select, write_kv


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_forward_equals_the_published_one_with_and_without_padding(family: str, seed: int, tmp_path: Path) -> None:
    shape = some_shape(family, seed)
    folder = folder_of(tmp_path / "checkpoint", family, shape, seed)
    module, denoiser = reference(folder, family, shape), load_folder(folder).denoiser
    for lengths in ([13], [13, 13], [5, 17, 9, 17]):
        canvas = canvas_of(lengths, 12, denoiser, seed)
        at = torch.arange(canvas.width - 12 - min(lengths), canvas.width).expand(len(canvas), -1)
        logits, wanted = logits_at(denoiser, canvas, at), library_logits(module, family, canvas, at, None)
        assert (logits - wanted).abs().max() < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_a_padded_row_equals_the_row_alone(family: str, tmp_path: Path) -> None:
    denoiser = load_folder(folder_of(tmp_path / "checkpoint", family)).denoiser
    lengths = [3, 40, 17, 16, 1]
    together = canvas_of(lengths, 9, denoiser, seed=1)
    at = torch.arange(together.width - 9, together.width).expand(len(together), -1)
    logits = logits_at(denoiser, together, at)
    for row, length in enumerate(lengths):
        prompt = together.tokens[row, together.start - length : together.start].tolist()
        alone = Canvas.blank([prompt], 9, denoiser.mask_id)
        single = logits_at(denoiser, alone, torch.arange(length, length + 9)[None])
        assert (logits[row] - single[0]).abs().max() < 1e-5
        assert torch.equal(logits[row], single[0])  # on a CPU even the same bytes


def test_padding_is_never_attended_to(tmp_path: Path) -> None:
    """Through the module itself, as a GPU runs it: no cutting of rows to their own length."""
    network = load_folder(folder_of(tmp_path / "checkpoint", "llada")).denoiser
    canvas = canvas_of([4, 20], 8, network, seed=2)
    module = network.module  # type: ignore[attr-defined]
    places = torch.arange(canvas.width) - canvas.pad[:, None]
    with torch.inference_mode():
        padded = module(canvas.tokens, places.clamp(min=0), canvas.real)
        alone = module(canvas.tokens[:1, 16:])
    assert (padded[0, 16:] - alone[0]).abs().max() < 1e-5


def test_columns_are_joined_left_to_right_and_a_row_with_fewer_repeats_its_last():
    canvas = Canvas.blank([[1, 2, 3, 4], [5, 6]], 4, mask_id=0)
    both = union(canvas, torch.tensor([[4, 6], [4, 5]]), torch.tensor([[3, 5], [3, 4]]))
    assert both.tolist() == [[3, 4, 5, 6], [3, 4, 5, 5]]


def test_keys_and_values_are_written_the_same_when_compiled(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    held, k, v = torch.randn(2, 3, 2, 7, 4), torch.randn(3, 2, 4, 4), torch.randn(3, 2, 4, 4)
    columns = torch.tensor([[0, 1, 5, 5], [2, 3, 4, 6], [6, 0, 1, 2]])
    k[0, :, 3], v[0, :, 3] = k[0, :, 2], v[0, :, 2]  # a column that is named twice says the same twice
    want, actual = held.clone(), held.clone()
    write_kv(want, columns, k, v)
    monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)
    write_kv(actual, columns, k, v)
    assert torch.equal(actual, want)
    assert not torch.equal(want, held)


def test_rows_of_keys_and_values_are_selected_with_their_heads():
    kv, rows = torch.randn(3, 2, 4, 2, 5, 6), torch.tensor([2, 0, 2])
    line, out = lines(kv, rows), torch.empty(2, 3, 2, 5, 6)
    for layer in kv:
        assert torch.equal(select(layer, line), layer[:, rows])
        assert torch.equal(select(layer, line, out=out), layer[:, rows])
        assert torch.equal(out, layer[:, rows])
