"""A mixture of experts: every position is sent through the few MLPs that its router scores highest.

On a GPU the experts are two grouped matrix products; on a CPU they are a loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.core.shapes import Float, Int

ROWS = 16  # on a CPU an expert's positions are padded to a multiple of this: same bytes, however many there are


@dataclass(frozen=True)
class Experts:
    """The sizes and the routing of a mixture."""

    count: int
    chosen: int  # experts per position
    hidden: int  # hidden size of each expert's MLP
    shared: int = 0  # hidden size of the MLP that every position goes through; 0: none
    dense: int = 0  # first layers, which have one MLP instead
    scoring: Literal["softmax", "sigmoid"] = "softmax"  # from the router's logits to scores
    bias: bool = False  # each expert has a bias that is added to its score, only to choose
    groups: int = 1  # groups of experts of equal size
    kept_groups: int = 1  # best groups from which experts are chosen
    normalised: bool = False  # the chosen scores are divided by their sum
    scale: float = 1.0  # factor of the chosen scores


def swiglu(gate_up: Float[Tensor, "*n twice"]) -> Float[Tensor, "*n hidden"]:
    """Return the hidden layer of an MLP from its gate and its input, which are one tensor."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up


def groups(dtype: torch.dtype) -> bool:
    """Return whether a GPU has grouped products of this dtype. The loop waits for the device: no graph can hold it."""
    return dtype == torch.bfloat16


class Mixture(nn.Module):
    """The MLPs of a layer's experts and the router that chooses among them."""

    def __init__(self, width: int, experts: Experts):
        super().__init__()
        self.experts = experts
        self.router = nn.Linear(width, experts.count, bias=False)
        self.bias = nn.Parameter(torch.zeros(experts.count)) if experts.bias else None
        self.gate_up = nn.Parameter(torch.empty(experts.count, 2 * experts.hidden, width))
        self.down = nn.Parameter(torch.empty(experts.count, width, experts.hidden))
        if experts.shared:
            self.shared_gate_up = nn.Linear(width, 2 * experts.shared, bias=False)
            self.shared_down = nn.Linear(experts.shared, width, bias=False)

    def forward(self, x: Float[Tensor, "row pos width"]) -> Float[Tensor, "row pos width"]:
        flat = x.flatten(0, 1)
        chosen, weight = self.route(flat)
        expert, order = chosen.flatten().sort(stable=True)
        sent = flat[order // self.experts.chosen]
        through = self._grouped(sent, expert) if x.is_cuda and groups(x.dtype) else self._looped(sent, expert)
        back = torch.empty_like(through).index_copy(0, order, through).unflatten(0, chosen.shape)
        mixed = (back.to(weight.dtype) * weight[:, :, None]).sum(1).to(x.dtype)
        if self.experts.shared:
            mixed = mixed + self.shared_down(swiglu(self.shared_gate_up(flat)))
        return mixed.view_as(x)

    def route(self, x: Float[Tensor, "n width"]) -> tuple[Int[Tensor, "n chosen"], Float[Tensor, "n chosen"]]:
        """Return the experts of each position and their weights, in float32 or better."""
        experts = self.experts
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        logits = F.linear(x.to(wide), self.router.weight.to(wide))
        score = logits.sigmoid() if experts.scoring == "sigmoid" else logits.softmax(1)
        rank = score if self.bias is None else score + self.bias.to(wide)
        if experts.groups > 1:
            groups = rank.unflatten(1, (experts.groups, -1))
            best = groups.topk(2, dim=2).values.sum(2).topk(experts.kept_groups, dim=1).indices
            shut = torch.ones_like(groups[:, :, 0], dtype=torch.bool).scatter(1, best, False)
            rank = groups.masked_fill(shut[:, :, None], -torch.inf).flatten(1)
        chosen = rank.topk(experts.chosen, dim=1).indices
        weight = score.gather(1, chosen)
        if experts.normalised:
            weight = weight / (weight.sum(1, keepdim=True) + 1e-20)
        return chosen, weight * experts.scale

    def _grouped(self, sent: Float[Tensor, "sent width"], expert: Int[Tensor, " sent"]) -> Tensor:
        """Compute positions sorted by expert, all experts in one product; nothing waits for the device."""
        ends = torch.searchsorted(expert, torch.arange(self.experts.count, device=sent.device), right=True).int()
        hidden = swiglu(F.grouped_mm(sent, self.gate_up.transpose(1, 2), offs=ends))
        return F.grouped_mm(hidden, self.down.transpose(1, 2), offs=ends)

    def _looped(self, sent: Float[Tensor, "sent width"], expert: Int[Tensor, " sent"]) -> Tensor:
        through = torch.empty_like(sent)
        counts = torch.bincount(expert, minlength=self.experts.count).tolist()
        start = 0
        for number, count in enumerate(counts):
            if count:
                part = F.pad(sent[start : start + count], (0, 0, 0, -count % ROWS))
                hidden = swiglu(F.linear(part, self.gate_up[number]))
                through[start : start + count] = F.linear(hidden, self.down[number])[:count]
                start += count
        return through
