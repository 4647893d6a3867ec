"""Execution traces as the tests read them: each is checked for what is true of all."""

import gzip
import json

import mindtorch_v2 as torch

PROCESS, THREAD = "[pytorch|profiler|execution_trace|process]", "[pytorch|profiler|execution_trace|thread]"
ATTRIBUTES = {
    "rf_id": "uint64", "fw_parent": "uint64", "seq_id": "int64", "scope": "uint64", "tid": "uint64", "fw_tid": "uint64",
    "op_schema": "string", "kernel_backend": "string", "kernel_file": "string", "tensor_range": "string",
}  # fmt: skip
ONE = torch.ones(1)


class Node:
    """A node of a trace that was read."""

    def __init__(self, entry):
        self.entry = entry
        self.id, self.name, self.parent = entry["id"], entry["name"], entry["ctrl_deps"]
        self.inputs, self.outputs = entry["inputs"], entry["outputs"]
        self.attrs = {a["name"]: a["value"] for a in entry["attrs"]}

    def __getitem__(self, attribute):
        return self.attrs[attribute]


class Trace:
    """A trace that was read; every one is checked for what is true of all."""

    def __init__(self, path):
        open_file = gzip.open if str(path).endswith(".gz") else open
        with open_file(path, "rt") as file:
            self.header = json.load(file)
        self.nodes = [Node(entry) for entry in self.header["nodes"]]
        self.by_id = {node.id: node for node in self.nodes}
        self._check()

    def _check(self):
        assert len(self.by_id) == len(self.nodes), "ids are unique"
        assert all(node.parent in self.by_id for node in self.nodes), "what is around a node is there"
        assert self.nodes[-1].name == PROCESS
        assert self.nodes[-1].id == self.nodes[-1].parent == 1
        numbers = [node["rf_id"] for node in self.nodes if node.name not in (PROCESS, THREAD)]
        assert len(set(numbers)) == len(numbers)
        assert all(number > 0 for number in numbers)
        for node in self.nodes:
            assert {a["name"]: a["type"] for a in node.entry["attrs"]} == ATTRIBUTES
            assert list(node.entry) == ["id", "name", "ctrl_deps", "inputs", "outputs", "attrs"]
            for side in (node.inputs, node.outputs):
                assert list(side) == ["values", "shapes", "types", "strides"]
                assert len({len(part) for part in side.values()}) == 1

    def __getitem__(self, name):
        (node,) = [node for node in self.nodes if node.name == name]
        return node

    def named(self, name):
        return [node for node in self.nodes if node.name == name]

    def names(self):
        return [node.name for node in self.nodes if node.name not in (PROCESS, THREAD)]

    def parent_of(self, node):
        return self.by_id[node.parent].name
