"""Programs that say `import torch`, run on this package: in this process and in those that it starts.

`finder` answers imports of torch, `children` hands that on to other processes, and `program` runs a program as Python would.
"""
