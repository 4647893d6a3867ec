"""The parts of `torch.nn.functional`, by subject."""
