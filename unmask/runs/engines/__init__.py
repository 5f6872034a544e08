"""Engines decode a run's jobs: in this process, or by workers on one or many machines."""

from unmask.errors import UnmaskError, nearest
from unmask.runs.engines.local import Local
from unmask.runs.job import Engine

ENGINES = ("local", "ray")


def make_engine(name: str = "local", workers: int | None = None, address: str | None = None) -> Engine:
    if name not in ENGINES:
        raise UnmaskError(f"unknown engine {name!r}: {nearest(name, ENGINES)}")
    if name == "local":
        if workers is not None or address is not None:
            given = "--workers" if workers is not None else "--address"
            raise UnmaskError(f"{given} is for --engine ray: the local engine is this process alone")
        return Local()
    from unmask.runs.engines.ray import Ray  # an optional extra

    return Ray(workers, address)


__all__ = ["ENGINES", "Engine", "Local", "make_engine"]
