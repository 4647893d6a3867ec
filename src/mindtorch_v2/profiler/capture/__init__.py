"""The sources of a recording, and the columns that it becomes.

here              `capture` (one recording), `claims` (which profiler runs), `source` (the protocol), `columns`, and what all sources share
operators/        the recorder inside every recorded call
scopes/           named blocks, backward nodes, calls of modules
stacks/           where in the program, and Python functions
memory/           storages, roles of tensors, the heap
execution_trace/  operators written as text while they run

`recorder` and `execution_layer` are hot: lines of theirs run in every operator while somebody records. What is recorded, as data, is `model/`:
`recording` is a session with its tree, `recorded_events` are its events as objects.
"""
