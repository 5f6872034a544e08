"""`unmask serve`: models over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.options import repeatable
from unmask.errors import UnmaskError

KEY = "UNMASK_API_KEY"


@options.expand("precision", "batch", "memory", "stop", "workers", "retry", length=options.Own("the model's own"))
def serve(
    model: Annotated[
        list[str] | None, repeatable("--model", "-m", metavar="MODEL", help="Model by name; default: tiny")
    ] = None,
    *,
    host: Annotated[str, typer.Option(metavar="NAME", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    api_key: Annotated[
        list[str] | None, repeatable("--api-key", metavar="KEY", help=f"Key that clients must send; also {KEY}")
    ] = None,
    unlocked: Annotated[bool, typer.Option("--unlocked", help="Serve other machines without a key.")] = False,
    limits: Annotated[dict[str, Any], ("unmask.serve.request", "RequestLimits")],
    decoding: options.DecodingFields,
    placement: options.PlacementFields,
    replicas: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Copies of each model; default: one per GPU.")
    ] = None,
    work: options.EngineFields,
    log_prompts: Annotated[bool, typer.Option("--log-prompts", help="Log prompts and answers as well.")] = False,
) -> None:
    """Serve models over HTTP by OpenAI's interface, many requests decoded together.

    The options of decoding are the defaults of requests.

    \b
    Examples:
      unmask serve --model tiny --decoder 'ots(beams=4)'
      UNMASK_API_KEY=secret unmask serve --model GSAI-ML/LLaDA-8B-Instruct --host 0.0.0.0
    """
    chosen = options.EngineOptions(**work)
    if chosen.local and chosen.address is not None:
        raise UnmaskError("--address is for --engine ray: the local engine is this process alone")
    from unmask.runs.settings import Decoding, Placement
    from unmask.serve.request import RequestLimits

    names = list(dict.fromkeys(model or [options.MODEL]))
    keys = [key for key in [*(api_key or []), os.environ.get(KEY, "")] if key]
    accepted, where = RequestLimits(**limits), Placement(**placement)
    Decoding.from_dict({"length": 0, **decoding})  # refused before a model is loaded
    try:
        from unmask.serve import server
    except ImportError as error:
        raise UnmaskError(f"serving needs {error.name}: pip install 'unmask[serve]'") from None
    reachable = server.Address(host, port)
    reachable.check(keys, unlocked)
    reachable.bind().close()
    with _cluster(names, replicas, chosen.address, where) if not chosen.local else nullcontext():
        metrics = server.Metrics()
        engines = server.make_engines(
            names,
            metrics,
            limits=accepted,
            decoding=decoding,
            placement=where,
            replicas=replicas,
            on_ray=not chosen.local,
            log_prompts=log_prompts,
        )
        server.run(engines, metrics, reachable, keys, _started)


@contextmanager
def _cluster(names: list[str], replicas: int | None, address: str | None, placement: Placement) -> Iterator[None]:
    """Join or start a Ray cluster with room for all replicas."""
    from unmask.runs.ray_engine import cluster_of, count_workers  # an optional extra

    if len(names) > 1 and replicas is None:
        raise UnmaskError("several models share the cluster: give the number of copies of each by --replicas")
    workers = replicas and replicas * len(names)
    with cluster_of(address, workers):
        count_workers(workers, placement.chosen_device == "cuda")  # refuses more than there is room for
        yield


def _started(url: str) -> None:
    print(f"unmask: serving at {url}", file=sys.stderr)
