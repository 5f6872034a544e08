"""Measure the memory that loading an 8B checkpoint needs, and its forward pass beside one written by hand.

    PYTHONPATH=. python benchmarks/load_8b.py                              # 8B shape, bfloat16, on a GPU
    PYTHONPATH=. python benchmarks/load_8b.py --size nano --device cpu     # a rehearsal anywhere

Writes a random checkpoint in LLaDA's published format, loads it from its shards, and prints the memory used on the
device and the host; then times a forward of 4 × 416 positions, with logits at one block, and the same by hand.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.bench.subject import Measurement, Tokens, measure
from unmask.core import Canvas
from unmask.models.checkpoints.random_weights import random_folder, random_shape
from unmask.models.devices import format_bytes
from unmask.models.load import load_folder
from unmask.models.network.network import Network
from unmask.models.network.transformer import Transformer


class HostMemory:
    """Measures the peak of this process's anonymous memory inside the `with`, beyond what it had before."""

    def __enter__(self) -> HostMemory:
        self.before = self.most = anonymous()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()
        self.most = max(self.most, anonymous())

    def _watch(self) -> None:
        while not self.over.wait(0.005):
            self.most = max(self.most, anonymous())

    @property
    def growth(self) -> int:
        return self.most - self.before


def anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def by_hand(module: Transformer, tokens: Tensor, at: Tensor) -> Tensor:
    """LLaDA's forward pass written for one shape: fused weights, no padding, logits only at `at`."""
    shape = module.shape
    rows, length = tokens.shape
    half = torch.arange(0, shape.head_width, 2, device=tokens.device, dtype=torch.float32) / shape.head_width
    angles = torch.arange(length, device=tokens.device, dtype=torch.float32)[:, None] * shape.theta**-half
    cos, sin = angles.cos(), angles.sin()

    def turn(x: Tensor) -> Tensor:
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)

    x = F.embedding(tokens, module.embed.weight)
    layer: Any
    for layer in module.layers:
        seen = F.rms_norm(x, (shape.width,), layer.attention_norm.weight, shape.eps)
        q, k, v = F.linear(seen, layer.qkv.weight).view(rows, length, 3, shape.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(turn(q), turn(k), v).transpose(1, 2).reshape(rows, length, -1)
        x = x + F.linear(mixed, layer.out.weight)
        seen = F.rms_norm(x, (shape.width,), layer.mlp_norm.weight, shape.eps)
        gate, up = F.linear(seen, layer.gate_up.weight).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, layer.down.weight)
    x = F.rms_norm(x, (shape.width,), module.norm.weight, shape.eps)
    wanted = x.gather(1, at[:, :, None].expand(-1, -1, shape.width)).flatten(0, 1)
    return F.linear(wanted, module.head.weight).float()


def median_ms(run: Callable[[], object], device: torch.device, times: int) -> float:
    def once(measurement: Measurement) -> Tokens:
        del measurement
        run()
        return []

    return 1e3 * statistics.median([measure(once, device).seconds for _ in range(times + 3)][3:])


def measure_load(
    folder: Path, device: torch.device, dtype: torch.dtype, weights: int
) -> tuple[Network, dict[str, float]]:
    cuda = device.type == "cuda"
    warm = torch.ones(64, 64, device=device, dtype=dtype)
    (warm @ warm).sum().item()  # loads the device's libraries, whose host memory is not the checkpoint's
    before = torch.cuda.memory_allocated(device) if cuda else 0
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
    began = time.perf_counter()
    with HostMemory() as host:
        network = load_folder(folder, device, dtype).denoiser
        if cuda:
            torch.cuda.synchronize(device)
    seconds = time.perf_counter() - began
    assert isinstance(network, Network)
    held = torch.cuda.memory_allocated(device) - before if cuda else weights
    most = torch.cuda.max_memory_allocated(device) - before if cuda else weights
    return network, {
        "load_seconds": seconds,
        "device_ratio": held / weights,
        "device_peak_ratio": most / weights,
        "host_growth_bytes": host.growth,
    }


def measure_forward(network: Network, rows: int, length: int, block: int, times: int) -> dict[str, float]:
    device, mask = network.device, network.mask_id
    prompt = [token for token in range(length - block + 1) if token != mask][: length - block]
    prompts = [[(token + row) % mask for token in prompt] for row in range(rows)]
    canvas = Canvas.blank(prompts, block, mask, device=device)
    at = canvas.slots
    places = torch.arange(rows * block, device=device)

    def ours() -> Tensor:
        return network(canvas, at).logits(places)

    def hand() -> Tensor:
        return by_hand(network.module, canvas.tokens, at)

    with torch.inference_mode():
        logits, expected = ours(), hand()
        logits[:, mask] = expected[:, mask] = 0
        difference = (logits - expected).abs().max().item() / expected.abs().max().item()
        # In turn, so that changes in the clock speed affect both.
        rounds = [(median_ms(ours, device, times), median_ms(hand, device, times)) for _ in range(2)]
    ms, by_hand_ms = (statistics.mean(column) for column in zip(*rounds, strict=True))
    return {
        "forward_ms": ms,
        "by_hand_ms": by_hand_ms,
        "forward_ratio": ms / by_hand_ms,
        "relative_difference": difference,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", default="8b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default=None, help="bfloat16 on a GPU, float32 on a CPU")
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--positions", type=int, default=416)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--folder", default=None, help="where to write the checkpoint (default: a temporary folder)")
    args = parser.parse_args()
    device = torch.device(args.device)
    dtype = getattr(torch, args.dtype or ("float32" if device.type == "cpu" else "bfloat16"))
    weights = random_shape("llada", args.size).parameters * dtype.itemsize
    with tempfile.TemporaryDirectory(dir=args.folder) as place:
        began = time.perf_counter()
        folder = random_folder(Path(place) / "checkpoint", "llada", args.size, dtype=dtype, device=device)
        write_seconds = time.perf_counter() - began
        if device.type == "cuda":
            torch.cuda.empty_cache()
        print(f"wrote {format_bytes(weights)} of weights in {write_seconds:.1f} s", flush=True)
        network, loaded = measure_load(folder, device, dtype, weights)
        print(
            f"loaded in {loaded['load_seconds']:.1f} s: device holds {loaded['device_ratio']:.4f} × the weights "
            f"(peak {loaded['device_peak_ratio']:.4f}), "
            f"anonymous host memory grew by {format_bytes(int(loaded['host_growth_bytes']))}",
            flush=True,
        )
        forward = measure_forward(network, args.rows, args.positions, args.block, args.times)
    print(
        f"one forward of {args.rows} × {args.positions}: {forward['forward_ms']:.2f} ms, "
        f"by hand {forward['by_hand_ms']:.2f} ms, ratio {forward['forward_ratio']:.3f}"
    )
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    about = {
        "device": name,
        "torch": torch.__version__,
        "dtype": str(dtype),
        "size": args.size,
        "weights_bytes": weights,
    }
    print(json.dumps({**about, "write_seconds": write_seconds, **loaded, **forward}))


if __name__ == "__main__":
    main()
