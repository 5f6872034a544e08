"""`unmask serve`: models over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

from unmask.cli import options
from unmask.cli.options import option
from unmask.errors import UnmaskError

KEY = "UNMASK_API_KEY"
KEYS, MODELS = f"Key that clients must send; also {KEY}; repeatable.", "Model by name; default: tiny; repeatable."


@options.expand("precision", "batch", "memory", "stop", "workers", "retry", length=options.Own("the model's own"))
def serve(
    model: Annotated[list[str] | None, option(MODELS, "--model", "-m", metavar="MODEL")] = None,
    *,
    host: Annotated[str, option("Address to listen on.", metavar="NAME")] = "127.0.0.1",
    port: Annotated[int, option("Port; 0 takes a free one.", metavar="N", min=0, max=65535)] = 8000,
    api_key: Annotated[list[str] | None, option(KEYS, metavar="KEY")] = None,
    unlocked: Annotated[bool, option("Serve other machines without a key.", "--unlocked")] = False,
    limits: Annotated[dict[str, Any], ("unmask.serve.limits", "RequestLimits")],
    decoding: options.DecodingFields,
    placement: options.PlacementFields,
    replicas: Annotated[int | None, option("Copies of each model; default: one per GPU.", metavar="N", min=1)] = None,
    work: options.EngineFields,
    log_prompts: Annotated[bool, option("Log prompts and answers as well.", "--log-prompts")] = False,
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
    from unmask.serve.limits import RequestLimits

    names = list(dict.fromkeys(model or [options.MODEL]))
    keys = [key for key in [*(api_key or []), os.environ.get(KEY, "")] if key]
    accepted, where = RequestLimits(**limits), Placement(**placement)
    Decoding.from_dict({"length": 0, **decoding})  # refused before a model is loaded
    try:
        from unmask.serve import server
    except ImportError as error:
        raise UnmaskError(f"serving needs {error.name}: pip install 'unmask[serve]'") from None
    if not keys and not unlocked:
        server.check_host(host)
    server.bind(host, port).close()
    cluster = nullcontext()
    if not chosen.local:
        cluster = _cluster(names, replicas, chosen.address, where.chosen_device == "cuda")
    with cluster:
        metrics = server.Metrics()
        how: dict[str, Any] = {"limits": accepted, "decoding": decoding, "placement": where, "replicas": replicas}
        engines = server.make_engines(names, metrics, on_ray=not chosen.local, log_prompts=log_prompts, **how)
        server.run(engines, metrics, host, port, keys, lambda url: print(f"unmask: serving at {url}", file=sys.stderr))


@contextmanager
def _cluster(names: list[str], replicas: int | None, address: str | None, cuda: bool) -> Iterator[None]:
    """Join or start a Ray cluster with room for all replicas."""
    from unmask.runs.ray_engine import cluster_of, count_workers  # an optional extra

    if len(names) > 1 and replicas is None:
        raise UnmaskError("several models share the cluster: give the number of copies of each by --replicas")
    workers = replicas and replicas * len(names)
    with cluster_of(address, workers):
        count_workers(workers, cuda)  # refuses more than there is room for
        yield
