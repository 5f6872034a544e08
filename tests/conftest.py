"""Shapes are checked on every call, examples are the same on every machine, and one thread does the work."""

from jaxtyping import install_import_hook

# Before anything imports unmask. Tasks hold no tensor, and their interpreter would be checked at every step.
ROOMS = (
    "api",
    "cli",
    "compat",
    "core",
    "decoders",
    "experiments",
    "models",
    "plain",
    "policies",
    "report",
    "runs",
    "training",
)
install_import_hook([f"unmask.{room}" for room in ROOMS], "beartype.beartype")

import unmask  # noqa: E402, F401, I001  before torch, which then computes with one order of summation

import torch  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

torch.set_num_threads(1)
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("fixed")
