"""What must stay light: text rooms never load torch or numpy."""

import subprocess
import sys

import pytest

CODE = "import sys, {module}; print([name for name in ('torch', 'numpy') if name in sys.modules])"


@pytest.mark.parametrize("module", ["unmask", "unmask.tasks", "unmask.errors", "unmask.registry", "unmask.cli"])
def test_importing_it_loads_neither_torch_nor_numpy(module: str):
    ran = subprocess.run([sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
