"""safetensors: files of tensors and of models, written, read whole, in slices and by name."""

import os
import tempfile

import torch
from report import show
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5))
tensors = {
    "float": torch.randn(3, 4), "int": torch.arange(5), "bfloat": torch.randn(3).bfloat16(), "half": torch.randn(3).half(),
    "bool": torch.tensor([True, False]), "double": torch.randn(2).double(), "empty": torch.zeros(0, 3),
}  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.safetensors")
    save_model(model, path)
    other = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5))
    missing, unexpected = load_model(other, path)
    show(missing=len(missing), unexpected=len(unexpected), weight=other[0].weight)
    save_file(tensors, path, metadata={"about": "tests"})
    read = load_file(path)
    show(**{name: read[name] for name in sorted(read)})
    show(dtypes=len([name for name in read if read[name].dtype == tensors[name].dtype]))
    with safe_open(path, framework="pt") as file:
        show(names=len(file.keys()), about=file.metadata()["about"], part=file.get_slice("float")[:, 1:2])
show(bytes=load(save(tensors))["bfloat"])
