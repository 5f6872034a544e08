"""Shapes are checked on every call, examples are the same on every machine, and one thread does the work."""

from jaxtyping import install_import_hook

install_import_hook("unmask", "beartype.beartype")  # before anything imports unmask

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
