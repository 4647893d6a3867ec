"""Checkpoint files: how `torch.save` writes them and `torch.load` reads them.

`writing` and `pickler` make files; `archive` (zip), `legacy` and `tar` (before PyTorch 1.6) and `tensor_file` (safetensors) read them.
What a pickle may do is in `weights_only`, `opcodes` and `rebuild`, where storages go in `locations`, what can be set in `options`.
"""
