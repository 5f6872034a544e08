"""inspect_ai: `unmask/NAME` among its models, by an entry point.

    inspect eval countdown.py --model unmask/tiny -M decoder=search -M length=64

Inspect imports this file whenever it looks for models: what needs torch is imported when one is made.
"""

from __future__ import annotations

from typing import Any

from unmask.errors import UnmaskError

try:
    from inspect_ai.model import modelapi
except ModuleNotFoundError as error:
    raise UnmaskError(f"inspect_ai needs {error.name}: pip install 'unmask[inspect]'") from None


@modelapi("unmask")
def provider() -> Any:
    from unmask.integrations.inspect_model import UnmaskAPI

    return UnmaskAPI
