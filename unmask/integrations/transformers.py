"""A decoder of this package as the `custom_generate` of Hugging Face's `generate`, for classes that have `generate`.

    model.generate(ids, custom_generate=custom_generate("search", mask_id=126336), max_new_tokens=64)

The callable is run as it is: no remote code is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack

import torch
from torch import Tensor

from unmask import api
from unmask.core import Decoder, decoder
from unmask.core.shapes import Int
from unmask.errors import UnmaskError
from unmask.models.checkpoints.tokenizer import Numbers
from unmask.models.hf import wrap
from unmask.runs.settings import DECODER, DecodingOptions, with_temperature
from unmask.runs.text import end_of_text, without_padding

Generate = Callable[..., Any]
# Criteria that `generate` makes from max_new_tokens, end-of-text and temperature, which are honoured here otherwise.
OWN = ("MaxLengthCriteria", "EosTokenCriteria", "TemperatureLogitsWarper")


def custom_generate(
    spec: str | Decoder = DECODER,
    *,
    mask_id: int | None = None,
    shifted: bool = False,
    **options: Unpack[DecodingOptions],
) -> Generate:
    """Return a callable for `model.generate(…, custom_generate=…)`.

    `mask_id` and `shifted` are those of `unmask.wrap`; the options are those of `unmask.generate`, without `length`,
    which is `max_new_tokens`, and `stop`. Beams, samples and processors of logits are refused: a decoder has its own.
    """
    chosen = decoder.make(spec)
    for name in ("decoder", "length", "stop"):
        if name in options:
            raise UnmaskError(f"{name} is not an option here: see unmask.integrations.transformers")

    def generate(
        model: Any,
        input_ids: Int[Tensor, "row pos"],
        logits_processor: Iterable[Any] = (),
        stopping_criteria: Iterable[Any] = (),
        generation_config: Any = None,
        **prepared: Any,  # only the attention mask applies to models that do not write from left to right
    ) -> Any:
        from transformers.generation.utils import GenerateDecoderOnlyOutput  # slow to import, and an optional extra

        _refuse(generation_config, [*logits_processor, *stopping_criteria])
        heat = generation_config.temperature if generation_config.do_sample else None
        wrapped = wrap(model, Numbers(), mask_id, shifted=shifted, eos=_ends(generation_config))
        mask = prepared.get("attention_mask")
        prompts = without_padding(input_ids.tolist(), None if mask is None else mask.tolist(), left_only=True)
        length, pad = generation_config.max_length - input_ids.shape[1], generation_config.pad_token_id
        decoding: Any = {**options, "length": length}
        decoding["decoder"] = chosen if heat is None else with_temperature(chosen, heat)
        outputs = api.generate(wrapped, prompts, batch=len(prompts), **decoding)
        answers = [output.hypotheses[output.chosen].ids[-length:] for output in outputs]
        ended = [_padded(answer, wrapped.eos, pad) for answer in answers]
        sequences = torch.cat([input_ids, torch.tensor(ended, device=input_ids.device)], dim=1)
        if not generation_config.return_dict_in_generate:
            return sequences
        return GenerateDecoderOnlyOutput(sequences=sequences)  # pyright: ignore[reportArgumentType]

    return generate


def _refuse(settings: Any, processors: Sequence[Any]) -> None:
    """Refuse settings that a decoder of masks does not have."""
    for name in ("num_beams", "num_return_sequences"):
        if (getattr(settings, name, None) or 1) > 1:
            raise UnmaskError(f"{name} does not apply here: name a decoder that searches, such as 'ots(beams=4)'")
    for each in processors:
        if type(each).__name__ not in OWN:
            raise UnmaskError(f"{type(each).__name__} does not apply to a decoder of masks: leave out what asks for it")


def _ends(settings: Any) -> list[int]:
    ends = settings.eos_token_id
    return [] if ends is None else [ends] if isinstance(ends, int) else list(ends)


def _padded(answer: Sequence[int], ends: frozenset[int], pad: int | None) -> list[int]:
    """Pad what follows the first end-of-text, as other classes of `generate` do."""
    end = end_of_text(answer, ends) + 1
    return list(answer) if pad is None else [*answer[:end], *[pad] * (len(answer) - end)]
