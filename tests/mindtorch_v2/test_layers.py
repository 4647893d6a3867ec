"""Imports point one way: from what is general to what is built on it."""

import ast
from pathlib import Path

import mindtorch_v2

ROOT = Path(mindtorch_v2.__file__).parent
# Each group may import those before it (and itself). Imports inside functions run later and are not counted.
ORDER = [
    {"_typing", "_dispatch.keys", "_dispatch.tls", "_dtype", "_device", "_checks", "_memory_format", "_dtype_info"},
    {"_storage"},
    {"_dispatch", "_promotion"},
    {"_tensor", "utils.hooks", "_record"},
    {"_backends", "_autograd"},
    {"_ops"},
    {"_functions"},
]


def group_of(module: str) -> int | None:
    parts = module.split(".")
    for depth in range(len(parts), 0, -1):
        name = ".".join(parts[:depth])
        for i, group in enumerate(ORDER):
            if name in group:
                return i
    return None


def imports_at_load(path: Path) -> set[str]:
    """Modules of the package that importing this file loads, as names relative to the package."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = set()
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        base = package[: len(package) - node.level + 1]
        target = base + (node.module.split(".") if node.module else [])
        for alias in node.names:
            inside = ROOT.joinpath(*target, alias.name)
            is_module = inside.with_suffix(".py").exists() or inside.is_dir()
            found.add(".".join([*target, alias.name] if is_module else target))
    return found


def test_imports_point_from_the_general_to_the_particular():
    wrong = []
    for path in ROOT.rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
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
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            assert not any(n.partition(".")[0] in ("torch", "mindspore") for n in names), path


# The profiler's files that may know the runtime. All others are data, and what is made of it.
CONTROL = {"__init__", "__main__", "_memory_profiler", "activity", "profiler", "schedule", "execution_trace", "itt"}
CAPTURE = {
    "call_inputs", "capture", "columns", "execution_extras", "execution_layer", "execution_nodes", "execution_scopes", "execution_values", "heap", "history", "living",
    "memory", "module_calls", "node_scopes", "operands", "python_tracer", "record_function", "recorder", "roles", "scopes", "stack_walk", "storage_hooks", "survivors",
    "tasks", "threads", "watching",
}  # fmt: skip


def relative_imports(path: Path) -> set[str]:
    """Modules that a file of the profiler imports anywhere, as names relative to the package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ["profiler"][: 2 - node.level]
            target = base + (node.module.split(".") if node.module else [])
            found |= {".".join([*target, alias.name]) if target in ([], ["profiler"]) else ".".join(target) for alias in node.names}
    return found


def test_the_profilers_model_and_outputs_know_neither_the_runtime_nor_how_it_is_recorded():
    files = {path.stem: path for path in (ROOT / "profiler").glob("*.py")}
    assert files.keys() > CONTROL | CAPTURE
    pure = files.keys() - CONTROL - CAPTURE
    wrong = []
    for name in pure:
        for other in relative_imports(files[name]):
            inside, _, module = other.partition(".")
            if inside != "profiler" or module.partition(".")[0] not in pure:
                wrong.append(f"profiler.{name} imports {other}")
    assert not wrong


def test_capture_does_not_know_who_controls_it_or_reads_it():
    readers = {"event_list", "events", "table", "chrome_trace", "stacks", "tensorboard", "averages", "profiler"}
    for name in CAPTURE:
        imported = {other.partition(".")[2] for other in relative_imports(ROOT / "profiler" / f"{name}.py")}
        assert not imported & readers, name


def test_no_file_of_the_profiler_names_mindspore():
    for path in (ROOT / "profiler").rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert "mindspore" not in path.read_text().lower(), path
