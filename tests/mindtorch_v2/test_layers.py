"""Imports point one way: from what is general to what is built on it."""

import ast
from pathlib import Path

import mindtorch_v2

ROOT = Path(mindtorch_v2.__file__).parent
# Each group may import those before it (and itself). Imports inside functions run later and are not counted.
ORDER = [
    {"_dispatch.keys", "_dispatch.tls", "_dtype", "_device", "_checks", "_memory_format", "_dtype_info"},
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


def test_source_is_compiled_in_one_place():
    places = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "eval", "compile"):
                places.add(path.relative_to(ROOT).as_posix())
    # the other runs the program that the profiler's command line is given
    assert places == {"_dispatch/codegen.py", "profiler/cli/program.py"}


def imports(path: Path) -> set[str]:
    """What a file imports anywhere, by full names; of a name taken from a package, the package and the name."""
    package = list(path.relative_to(ROOT.parent).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
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
    layers = {"writing": {"writing"}, "model": {"model", "writing"} | values, "output": {"output", "model", "writing"} | values}
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
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
                assert not any(isinstance(part, ast.FormattedValue) for part in node.format_spec.values), path
            assert not (isinstance(node, ast.Attribute) and node.attr in ("ljust", "rjust", "center")), path


def test_no_file_of_the_profiler_names_mindspore():
    for path in (ROOT / "profiler").rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert "mindspore" not in path.read_text().lower(), path
