"""The public names of PyTorch, namespace by namespace: which are here, which refuse with a reason, which are absent.

`python tests/parity/surface.py` prints the table; `--absent` the names that are absent; `--write docs/compatibility.md` writes
the table anew, and the list of names that are missing.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import re
import textwrap
import types
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch

import mindtorch_v2
from mindtorch_v2._missing import reason_for

__all__ = ["NAMESPACES", "compare", "is_refusal", "merely_raises", "public_names", "section"]

NAMESPACES = """
torch Tensor nn nn.functional nn.init nn.parameter nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn
nn.utils.stateless nn.attention nn.parallel optim optim.lr_scheduler optim.swa_utils autograd autograd.forward_ad autograd.function
autograd.functional autograd.grad_mode autograd.graph autograd.profiler func distributions linalg fft special signal.windows sparse masked
amp cpu cpu.amp cuda cuda.amp mps xpu accelerator backends.cpu backends.cuda backends.mkl backends.mps
backends.nnpack backends.openmp compiler jit fx export onnx library overrides profiler testing utils utils.data utils.data.distributed
utils.checkpoint utils.benchmark utils.tensorboard utils.dlpack utils.hooks utils.cpp_extension utils.model_zoo utils.flop_counter
utils.module_tracker utils.weak utils.backend_registration utils._python_dispatch random serialization storage hub
futures multiprocessing distributed package quasirandom functional nested types version monitor return_types
""".split()  # fmt: skip

# Names in modules without a list that are imports, texts of the documentation, or parts of the build.
NOT_PUBLIC = frozenset(
    """
TYPE_CHECKING Tensor common_notes reproducibility_notes tf32_notes sparse_support_notes BroadcastingList1 BroadcastingList2 BroadcastingList3
boolean_dispatch assert_int_or_pair handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic tqdm
all_return_types pytree_register_structseq USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH
""".split()
)

HEAD = """
## Public names

Of each namespace of PyTorch 2.13: the names that are here; those that refuse, because there cannot be such a thing here or because it is of no use, with a
reason in the error; and those that are absent. A name that is here does what it says: one that does nothing but refuse counts as refused. What PyTorch
itself refuses without a GPU is refused in the same words, and counts as here.

"""


class Names(NamedTuple):
    """The names of a namespace."""

    namespace: str
    here: list[str]
    refused: list[str]
    absent: list[str]

    @property
    def total(self) -> int:
        return len(self.here) + len(self.refused) + len(self.absent)


def public_names(module: Any) -> set[str]:
    """The public names of a module or class of PyTorch: what it lists, or what is defined in PyTorch and not in an underscored or foreign module."""
    listed = getattr(module, "__all__", None)
    if listed is not None and module is not torch:
        return {n for n in listed if hasattr(module, n)} - NOT_PUBLIC
    if inspect.isclass(module):
        return {n for n in dir(module) if not n.startswith("_")}
    return {n for n in dir(module) if not n.startswith("_") and _is_own(module, n)}


def _is_own(module: Any, name: str) -> bool:
    """Whether a name of a module without a list is meant for users: no import of typing or another package, no constant of the build."""
    if name in NOT_PUBLIC:
        return False
    if module is torch and name in torch.__all__:
        return True
    value = getattr(module, name)
    if isinstance(value, types.ModuleType):
        return value.__name__ == f"{module.__name__}.{name}"
    home = getattr(value, "__module__", None) or ""
    if module is torch:  # beside its list, what C++ gives it: operators; the classes are those of TorchScript and of the build
        return isinstance(value, types.BuiltinFunctionType | torch.dtype | torch.layout | torch.memory_format)
    return home.startswith("torch") or (not home and not callable(value))


def is_refusal(value: Any) -> bool:
    """Whether a function or class does nothing but refuse."""
    function = value
    statements = _statements(function)
    return len(statements) == 1 and _refuses(statements[0])


def merely_raises(value: Any) -> bool:
    """Whether a function or class ends in an exception whatever it is given, after checks at most."""
    statements = _statements(value)
    blocks = ast.Try | ast.With | ast.For | ast.While
    inside = [node for s in statements for node in ast.walk(s)]
    returns = any(isinstance(node, ast.Return | ast.Yield) for node in inside)
    return (
        bool(statements)
        and isinstance(statements[-1], ast.Raise)
        and not returns
        and not any(isinstance(s, blocks) for s in statements)
    )


def _statements(value: Any) -> list[ast.stmt]:
    """What a function, or the making of a class, does; nothing for what is not written in Python."""
    function = value
    if inspect.isclass(value):
        own = [vars(value)[name] for name in ("__new__", "__init__") if name in vars(value)]
        function = own[0] if own else None
    function = inspect.unwrap(getattr(function, "__func__", function)) if callable(function) else function
    if not isinstance(function, types.FunctionType) or not function.__code__.co_filename.endswith(".py"):
        return []
    return _body(function.__code__)


@functools.cache
def _body(code: types.CodeType) -> list[ast.stmt]:
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError):
        return []
    if not isinstance(definition, ast.FunctionDef):
        return []
    return [s for s in definition.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def _refuses(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        raised = ast.unparse(statement.exc) if statement.exc else ""
        return raised.startswith("NotImplementedError")
    value = statement.value if isinstance(statement, ast.Expr | ast.Return) else None
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in ("refuse", "_refuse")


def _module(root: Any, path: str) -> Any:
    """A namespace, imported if it is a module that waits for that."""
    if path == "torch":
        return root
    found = root
    for i, part in enumerate(path.split(".")):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join([root.__name__, *path.split(".")[: i + 1]]))
    return found


def compare(namespace: str) -> Names:
    """Sort the names of a namespace."""
    names = sorted(public_names(_module(torch, namespace)))
    path = "" if namespace == "torch" else f"{namespace}."
    try:
        ours = _module(mindtorch_v2, namespace)
    except ImportError:
        ours = None
    result = Names(namespace, [], [], [])
    for name in names:
        if ours is not None and hasattr(ours, name):
            (result.refused if is_refusal(getattr(ours, name)) else result.here).append(name)
        else:
            (result.absent if "does not yet" in reason_for(path + name) else result.refused).append(name)
    return result


def section(found: list[Names]) -> str:
    """The part of the page about names."""
    lines = ["| namespace | names | here | refused | absent | share |", "|---|---|---|---|---|---|"]
    for names in found:
        title = "torch" if names.namespace == "torch" else f"torch.{names.namespace}"
        absent = " ".join(f"`{n}`" for n in names.absent[:12]) + (" …" if len(names.absent) > 12 else "")
        count = f"{len(names.absent)}: {absent}" if names.absent else "0"
        share = f"{len(names.here) / names.total:.0%}"
        lines.append(f"| `{title}` | {names.total} | {len(names.here)} | {len(names.refused)} | {count} | {share} |")
    return HEAD + totals(found) + "\n\n" + "\n".join(lines) + "\n"


def totals(found: list[Names]) -> str:
    total, here = sum(n.total for n in found), sum(len(n.here) for n in found)
    refused, absent = sum(len(n.refused) for n in found), sum(len(n.absent) for n in found)
    possible = here / (here + absent)
    return (
        f"**{here} of {total} names are here ({here / total:.0%}), {refused} refuse, {absent} are absent.** "
        f"Of those that do not refuse, {possible:.0%} are here."
    )


def write(path: str, sections: dict[str, str]) -> None:
    """Put sections into the page, each in the place of the one with its heading."""
    page = Path(path).read_text()
    for heading, text in sections.items():
        pattern = re.compile(rf"\n## {re.escape(heading)}\n.*?(?=\n## )", re.S)
        assert pattern.search(page), f"the page has no section {heading!r}"
        page = pattern.sub(lambda match, text=text: text.rstrip("\n") + "\n", page)
    Path(path).write_text(page)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("namespaces", nargs="*", default=NAMESPACES)
    parser.add_argument("--absent", action="store_true", help="print the names that are absent")
    parser.add_argument("--refused", action="store_true", help="print the names that refuse")
    parser.add_argument("--write", metavar="FILE", help="write the table into the page")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = [compare(namespace) for namespace in options.namespaces]
    for names in found:
        print(
            f"{names.namespace:28s} {names.total:5d} names {len(names.here):5d} here {len(names.refused):5d} refused {len(names.absent):5d} absent"
        )
        if options.absent and names.absent:
            print("   ", " ".join(names.absent))
        if options.refused and names.refused:
            print("   ", " ".join(names.refused))
    print(totals(found).replace("**", ""))
    if options.write:
        from compatibility import missing_names  # which imports this module

        write(options.write, {"Public names": section(found), "Names that are missing": missing_names()})


if __name__ == "__main__":
    main()
