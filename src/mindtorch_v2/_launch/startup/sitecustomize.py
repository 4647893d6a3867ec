"""Python runs this at its start where PYTHONPATH has this folder: `import torch` means mindtorch_v2 there, too.

Another `sitecustomize` of the environment runs after it, and `sys.path` is as if this folder were not in PYTHONPATH.
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def answer_torch() -> None:
    """Install the finder, in the environment that the first process runs in. Others may have a torch of their own."""
    if os.environ.get("MINDTORCH_AS_TORCH") != sys.prefix:
        return
    spec = importlib.util.spec_from_file_location("_mindtorch_v2_finder", os.path.join(os.path.dirname(HERE), "finder.py"))
    assert spec is not None
    assert spec.loader is not None
    finder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(finder)
    finder.install()


def run_the_next() -> None:
    """Run the `sitecustomize` that this one hides, if there is one."""
    sys.path[:] = [entry for entry in sys.path if entry != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


answer_torch()
run_the_next()
