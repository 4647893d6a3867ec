"""Named blocks, backward nodes and calls of modules."""
