"""Models from any loaded module that returns `.logits` for token ids, such as those of `transformers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from unmask.core import Beliefs, CacheView, Canvas
from unmask.core.shapes import Columns
from unmask.errors import UnmaskError, keywords_checked
from unmask.models.checkpoints.tokenizer import Subwords, chat_text, flat_ids
from unmask.models.model import Messages, Model, Text

CHUNK = 2**28  # logits that a module may compute at a time: it computes those of every position
UNKNOWN = 2**20  # context where neither the caller nor the config sets one
PROBE = 8  # positions of the test for causal modules


@keywords_checked
def wrap(
    module: Callable[..., Any],
    tokenizer: Any,
    mask_id: int | None = None,
    *,
    eos: Iterable[int] | None = None,
    context: int | None = None,
    shifted: bool = False,
    length: int = 128,
    name: str | None = None,
) -> Model:
    """Return a model from a loaded module and its tokenizer (of `transformers` or `tokenizers`, or a `Text`).

    `module(ids).logits` must be about the token at the same position, or with `shifted` about the next one. Rows are
    passed by length and without padding, so no attention mask is needed. Arguments left out are read from the tokenizer
    and from `module.config`.
    """
    settings = getattr(module, "config", None)
    mask_id = _first(mask_id, _get(tokenizer, "mask_token_id"), _get(settings, "mask_token_id"))
    if mask_id is None:
        raise UnmaskError("the tokenizer has no mask token: pass its id, as in wrap(module, tokenizer, mask_id=126336)")
    if isinstance(module, torch.nn.Module):
        module.eval()
    limit = context or _get(settings, "max_sequence_length") or _get(settings, "max_position_embeddings") or UNKNOWN
    network = LoadedModule(module, mask_id, limit, shifted)
    _refuse_causal(network, settings)
    ends = eos if eos is not None else (_get(tokenizer, "eos_token_id"), _get(settings, "eos_token_id"))
    return Model(
        name or _first(_get(settings, "name_or_path") or None, type(module).__name__),
        network,
        _text(tokenizer),
        frozenset(flat_ids(ends)),
        length,
    )


class LoadedModule:
    """A denoiser around a module of which only the logits are used."""

    refresh = block_size = None

    def __init__(self, module: Callable[..., Any], mask_id: int, context: int, shifted: bool = False):
        self.module, self.mask_id, self.context, self.shifted = module, mask_id, context, shifted
        weight = next(iter(module.parameters()), None) if isinstance(module, torch.nn.Module) else None
        self.device = torch.device("cpu") if weight is None else weight.device
        sample = self.logits(torch.tensor([[mask_id]], device=self.device))
        self.vocab = sample.shape[-1]
        self.dtype = torch.float64 if sample.dtype == torch.float64 else torch.float32
        if not 0 <= mask_id < self.vocab:
            raise UnmaskError(f"mask_id must be in the module's vocabulary, 0 to {self.vocab - 1}, got {mask_id}")

    def logits(self, tokens: Tensor) -> Tensor:
        try:
            with torch.inference_mode():
                output = self.module(tokens)
        except IndexError:
            raise UnmaskError(
                f"mask_id must be in the module's embedding, which is smaller, got {self.mask_id}"
            ) from None
        logits = getattr(output, "logits", None)
        if not isinstance(logits, Tensor) or logits.shape[:2] != tokens.shape:
            raise UnmaskError(
                f"{type(self.module).__name__} returns no .logits of shape (row, position, vocabulary): "
                "load it with its language-model head"
            )
        return logits

    def __call__(self, canvas: Canvas, at: Columns, cache: CacheView | None = None) -> Beliefs:
        del cache
        if self.shifted:
            at = torch.maximum(at - 1, canvas.pad[:, None])
        lengths = canvas.width - canvas.pad
        out: Tensor | None = None
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero()[:, 0]
            for chunk in rows.split(max(1, CHUNK // (length * self.vocab))):
                logits = self.logits(canvas.tokens[chunk, canvas.width - length :])
                columns = (at[chunk] - (canvas.width - length))[:, :, None].expand(-1, -1, self.vocab)
                out = logits.new_empty(*at.shape, self.vocab) if out is None else out
                out[chunk] = logits.gather(1, columns)
        assert out is not None
        flat = out.flatten(0, 1)
        return Beliefs(flat.__getitem__, (at.shape[0], at.shape[1]), self.vocab, self.mask_id, self.device)


def _refuse_causal(network: LoadedModule, settings: Any) -> None:
    """Refuse a module in which no later token changes the logits of an earlier position."""
    tokens = torch.arange(PROBE, device=network.device)[None] % network.vocab
    tokens[:, 1::3] = network.mask_id
    changed = tokens.clone()
    changed[:, -1] = (tokens[:, -1] + network.vocab // 2) % network.vocab
    before, after = (network.logits(row)[:, :-1].float() for row in (tokens, changed))
    if before.isnan().any() or after.isnan().any():
        raise UnmaskError(
            f"{type(network.module).__name__} returns logits that are not numbers: check weights and dtype"
        )
    if (before - after).abs().max() > 1e-4 * before.abs().max():
        return
    hint = " (its config sets is_decoder)" if _get(settings, "is_decoder") else ""
    raise UnmaskError(
        f"{type(network.module).__name__} is causal{hint}: no later token changes the logits of an earlier position, "
        "so it cannot fill masks; pass a masked language model"
    )


@dataclass(frozen=True)
class LoadedTokenizer:
    """A tokenizer of `transformers` as a `Text`."""

    tokenizer: Any

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    @property
    def templated(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    def chat(self, messages: Messages) -> str:
        return chat_text(messages, self._render if self.templated else None)

    def _render(self, messages: list[dict[str, str]]) -> str:
        return self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def _text(tokenizer: Any) -> Text:
    """Return the tokenizer as a `Text`."""
    if isinstance(tokenizer, Tokenizer):
        return Subwords(tokenizer)
    if hasattr(tokenizer, "chat"):
        return tokenizer
    if hasattr(tokenizer, "encode") and hasattr(tokenizer, "decode"):
        return LoadedTokenizer(tokenizer)
    raise UnmaskError(f"{type(tokenizer).__name__} is not a tokenizer: it needs encode() and decode()")


def _get(value: Any, key: str) -> Any:
    return getattr(value, key, None)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
