"""LLaDA's vocabulary: 16 rows of 512 positions would be 4 GB of logits, which are never held at once."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import resource, sys
    import unmask, torch
    import unmask.decoders
    from unmask.core import Beliefs, Canvas, decode, decoder

    torch.set_num_threads(1)
    VOCAB, WIDTH = 126_464, 16

    class Head:
        '''Hidden states that depend on what is visible, and LLaDA's head over them.'''
        mask_id, context, device, dtype = 126_336, 4096, torch.device("cpu"), torch.float32
        refresh = block_size = None
        vocab = VOCAB

        def __init__(self):
            made = torch.Generator().manual_seed(0)
            self.embed = torch.randn(VOCAB, WIDTH, generator=made)
            self.head = torch.randn(WIDTH, VOCAB, generator=made)

        def __call__(self, canvas, at, cache=None):
            hidden = self.embed[canvas.tokens].cumsum(1).tanh()
            hidden = hidden.gather(1, at[:, :, None].expand(-1, -1, WIDTH)).flatten(0, 1)
            return Beliefs(lambda places: hidden[places] @ self.head, tuple(at.shape), VOCAB, self.mask_id, self.device)

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    model = Head()
    (model.head[:, :8].T @ model.head[:, :8]).exp().sum()  # libraries are loaded before the baseline is taken
    prompts = [[i] * (512 - int(sys.argv[2])) for i in range(16 // int(sys.argv[3]))]
    canvas = Canvas.blank(prompts, int(sys.argv[2]), model.mask_id)
    before = peak()
    decode(decoder.make(sys.argv[1]), model, canvas)
    print(peak() - before)
"""


def peak_above_model(spec: str, length: int, beams: int) -> int:
    words = [sys.executable, "-c", textwrap.dedent(PROGRAM), spec, str(length), str(beams)]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(
    ("spec", "length", "beams"),
    [
        ("low-confidence(block=128, steps=1, temperature=0.8)", 128, 1),
        ("order-token-search(beams=4, block=32, steps=1, temperature=0.8)", 32, 4),
        pytest.param("order-token-search(beams=4, block=480, steps=1)", 480, 4, marks=pytest.mark.slow),
    ],
)
def test_decoding_at_lladas_vocabulary_stays_far_below_one_and_a_half_gigabytes(spec: str, length: int, beams: int):
    """16 rows of 512 positions; a search of 4 problems scores 64 completions besides."""
    assert peak_above_model(spec, length, beams) < 0.5e9  # a third of what is promised
