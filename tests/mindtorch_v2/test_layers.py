"""Imports point one way: from what is general to what is built on it."""

import ast
import functools
import gc
import importlib
import re
from pathlib import Path

import pytest

import mindtorch_v2
from mindtorch_v2._dispatch import registry

ROOT = Path(mindtorch_v2.__file__).parent
# Each group may import those before it (and itself). Imports inside functions have a test of their own.
ORDER = [
    {"_dispatch.keys", "_dispatch.tls", "_dtype", "_device", "_checks", "_memory_format", "_dtype_info"},
    {"_storage"},
    {"_dispatch", "_promotion"},
    {"_tensor", "utils.hooks", "_record"},
    {"_backends", "_autograd"},
    {"_ops"},
    {"_functions"},
]


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def trees_are_freed():
    """Let the million objects of the sources' trees go: to later tests that collect garbage they would cost half a second each time."""
    gc.disable()  # nor is it collected while they are made
    yield
    parsed.cache_clear()
    gc.enable()


def module_name(path: Path) -> str:
    """The name relative to the package; empty for the package itself."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def group_of(module: str) -> int | None:
    parts = module.split(".")
    for depth in range(len(parts), 0, -1):
        name = ".".join(parts[:depth])
        for i, group in enumerate(ORDER):
            if name in group:
                return i
    return None


def statements(tree: ast.AST) -> list[ast.AST]:
    """The statements directly inside of another, with the branches of `try` and `match`."""
    blocks = [getattr(tree, name, ()) for name in ("body", "orelse", "finalbody", "handlers", "cases")]
    return [node for block in blocks if isinstance(block, list) for node in block]


def import_statements(tree: ast.AST, *, inside: bool = False) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The imports that are made when a program runs, and whether each stands in a function."""
    found = []
    for node in statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, inside))
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found += [each for other in node.orelse for each in import_statements(other, inside=inside)]
        else:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            found += import_statements(node, inside=inside or is_function)
    return found


def targets(path: Path, node: ast.Import | ast.ImportFrom) -> set[str]:
    """Modules of the package that an import names."""
    if isinstance(node, ast.Import) or node.level == 0:
        return set()
    module = module_name(path).split(".")
    package = module if path.name == "__init__.py" else module[:-1]
    base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
    found = set()
    for alias in node.names:
        inside = ROOT.joinpath(*base, alias.name)
        is_module = inside.with_suffix(".py").exists() or inside.joinpath("__init__.py").exists()
        found.add(".".join([*base, alias.name] if is_module else base))
    return found


@functools.cache
def imports_at_load(path: Path) -> frozenset[str]:
    """Modules of the package that importing this file loads, as names relative to the package."""
    return frozenset(t for node, inside in import_statements(parsed(path)) if not inside for t in targets(path, node))


def loaded_with(module: str, target: str) -> set[str]:
    """What an import of a module loads first: it, and the packages that it is in and the importing one is not."""
    own = {module.rsplit(".", n)[0] for n in range(1, module.count(".") + 1)}
    return {".".join(target.split(".")[:n]) for n in range(1, target.count(".") + 2)} - (own - {target})


@functools.cache
def load_graph() -> dict[str, set[str]]:
    """Module → modules that are loaded with it. The package itself is in none: it is always being loaded."""
    graph = {}
    for path in ROOT.rglob("*.py"):
        module = module_name(path)
        graph[module] = {m for target in imports_at_load(path) for m in loaded_with(module, target)} - {module}
    graph["_ops"] |= {module for module in graph if module.startswith("_ops.")}  # found in its folder
    return graph


@functools.cache
def reached_from(start: str) -> set[str]:
    """A module, and all that is loaded with it."""
    seen, waiting = {start}, [start]
    while waiting:
        new = load_graph().get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


# What is said of an import inside a function, in its line. Costs are said in a few words.
REASON = re.compile(r"# (?:cycle with (?P<cycle>[\w.]+)|costly: \S.*|not on every system)$")


def wrong_reason(path: Path, node: ast.Import | ast.ImportFrom) -> str | None:
    line = path.read_text().splitlines()[node.end_lineno - 1]
    reason = REASON.search(line)
    if reason is None:
        return "has no reason (`# cycle with …`, `# costly: …`, `# not on every system`)"
    named = reason["cycle"]
    if named is None:
        return None
    module = module_name(path)
    is_real = named in targets(path, node) and any(module in reached_from(m) for m in loaded_with(module, named))
    return None if is_real else f"makes no cycle with {named}: the import can stand at the top"


def test_imports_inside_functions_have_a_reason():
    late = [(path, node) for path in ROOT.rglob("*.py") for node, inside in import_statements(parsed(path)) if inside]
    wrong = [f"{path.relative_to(ROOT)}:{node.lineno} {why}" for path, node in late if (why := wrong_reason(path, node))]
    assert not wrong
    # so many there are; fewer is better. A command imports what it needs when it runs: the front door starts without the runtime
    assert len([path for path, _ in late if path.parent != ROOT / "cli"]) <= 47


def test_imports_point_from_the_general_to_the_particular():
    wrong = []
    for path in ROOT.rglob("*.py"):
        module = module_name(path)
        own = group_of(module)
        if own is None:
            continue
        wrong += [f"{module} imports {other}" for other in imports_at_load(path) if (g := group_of(other)) is not None and g > own]
    assert not wrong


def test_dispatch_knows_neither_profiler_nor_autograd():
    for path in (ROOT / "_dispatch").glob("*.py"):
        assert not any("autograd" in m or "profiler" in m for m in imports_at_load(path)), path


def test_nothing_imports_torch_or_mindspore():
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            assert not any(n.partition(".")[0] in ("torch", "mindspore") for n in names), path


def test_source_is_compiled_in_one_place():
    places = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("exec", "eval", "compile")
                and path.parent.name != "compiler"
            ):
                places.add(path.relative_to(ROOT).as_posix())
    # the others run the program that the command line is given, the cell of a notebook, and the code of a graph of torch.fx
    assert places == {"_dispatch/codegen.py", "_launch/program.py", "fx/graph_module.py", "notebook.py"}


def imports(path: Path) -> set[str]:
    """What a file imports anywhere, by full names; of a name taken from a package, the package and the name."""
    package = list(path.relative_to(ROOT.parent).parts[:-1])
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def files(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / "profiler" / folder).rglob("*.py")]
    assert len(found) > 3
    return found


def test_the_profilers_layers():
    """What outputs are written with knows nothing, the model knows that, and outputs know both. None knows the runtime or how it is recorded."""
    values = {"device_type", "experimental_config"}
    layers = {
        "writing": {"writing"},
        "model": {"model", "writing"} | values,
        "output": {"output", "model", "writing", "opening", "advice", "device"} | values,
    }
    for folder, allowed in layers.items():
        for path in files(folder):
            inside = [name.split(".") for name in imports(path) if name.startswith("mindtorch_v2")]
            assert all(name[1] == "profiler" and name[2] in allowed for name in inside), path


def test_capture_does_not_know_who_controls_it_or_reads_it():
    writers = ("input_text", "snapshot")  # of what is written while it happens
    for path in files("capture"):
        for name in imports(path):
            if name.startswith("mindtorch_v2.profiler.output."):
                assert name.split(".")[3] in writers, path
            elif name.startswith("mindtorch_v2.profiler.model."):
                assert name.split(".")[3] not in ("events", "averages"), path
            else:
                assert not name.startswith(
                    (
                        "mindtorch_v2.profiler.profiler",
                        "mindtorch_v2.profiler.autograd_profile",
                        "mindtorch_v2.profiler.schedule",
                        "mindtorch_v2.autograd.profiler",
                    )
                ), path


def test_the_older_module_of_the_profiler_has_names_alone():
    tree = ast.parse((ROOT / "autograd" / "profiler.py").read_text())
    docstring, *statements = tree.body
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(node, ast.ImportFrom | ast.Assign) for node in statements)
    assert [node.targets[0].id for node in statements if isinstance(node, ast.Assign)] == ["__all__"]


def test_one_module_pads_the_columns_of_tables():
    """Widths in formats and `ljust` are for one file; numbers of fixed width are none of that."""
    for path in (ROOT / "profiler").rglob("*.py"):
        if path.name == "text_table.py":
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
                assert not any(isinstance(part, ast.FormattedValue) for part in node.format_spec.values), path
            assert not (isinstance(node, ast.Attribute) and node.attr in ("ljust", "rjust", "center")), path


def test_no_file_of_the_profiler_names_mindspore():
    for path in (ROOT / "profiler").rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert "mindspore" not in path.read_text().lower(), path


def test_types_that_are_known_are_written():
    """`Any` alone says nothing of an argument or a result; names of types that many functions take are in `_types.py`."""
    bare = lines = 0
    for path in ROOT.rglob("*.py"):
        lines += path.read_text().count("\n")
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                annotations = [node.returns, *(argument.annotation for argument in every)]
                bare += sum(isinstance(each, ast.Name) and each.id == "Any" for each in annotations)
    assert bare / lines <= 0.0125  # so many there are; fewer is better


def test_no_operator_is_called_for_its_row():
    """A composite uses what its parts compute: whatever runs for nothing else than to be seen in a profile is not the program's."""
    operators = {op.name for op in registry.all_ops()}
    unused = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value.func.id}"
        for path in (ROOT / "_ops").rglob("*.py")
        for names in [vars(importlib.import_module(f"{mindtorch_v2.__name__}.{module_name(path)}"))]
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        if node.value.func.id in operators & names.keys() and not node.value.func.id.endswith("_")
    ]
    assert unused == []
