"""The command line, `mindtorch`. `frame` finds the command and runs it; each command is a module of its own.

A command's module has its help as its docstring (the first line says what it does, examples come last), `add_arguments(parser)`, and
`run(options)`. A command raises; `frame.main` alone prints errors and exits. What a command needs is imported when it is chosen.
"""
