"""`mindtorch COMMAND …`: finds the command, parses its arguments, runs it, and turns errors into a sentence and an exit status."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from .._launch.finder import API_VERSION

__all__ = ["COMMANDS", "Command", "CommandError", "Entry", "Parser", "UsageError", "described", "main", "near", "parser_of"]


class CommandError(Exception):
    """A command cannot do what it was asked: a sentence for the user. The exit status is 1, or what Python has for it."""

    def __init__(self, reason: str, status: int = 1) -> None:
        super().__init__(reason)
        self.status = status


class UsageError(Exception):
    """Arguments that a command does not take. The exit status is 2."""


class Command(Protocol):
    """The module of a command that reads a file; its docstring is the help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> None: ...


@dataclass(frozen=True)
class Entry:
    """A command in the table: what it does, as the first line of its help has it."""

    summary: str
    runs_program: bool = False  # its errors are the program's, and it parses its arguments itself: `parser()` and `main(arguments)`


COMMANDS = {
    "profile": Entry("Run a program, record it, and leave a folder with the answers.", runs_program=True),
    "run": Entry("Run a program in which `import torch` means mindtorch_v2.", runs_program=True),
    "top": Entry("Show where the time went: a row for each operator, scope and function."),
    "device": Entry("Show what the devices did: kernels, copies, streams, idle time and its causes."),
    "trace": Entry("Write the recording as a trace for Perfetto and chrome://tracing."),
    "flame": Entry("Write a flame graph: for speedscope, as folded stacks, or as a picture."),
    "memory": Entry("Show what memory was used for: the peak, who made it, and a timeline."),
    "leaks": Entry("Show the memory that was made in the recording and not freed."),
    "report": Entry("Write a recording as one HTML page: where the time went, timeline, flame graphs, memory."),
    "diff": Entry("Say what changed between two recordings: what takes longer or shorter, was added, removed, renamed or moved."),
    "query": Entry("Ask a recording in SQL, or one of the questions that have a name."),
    "advise": Entry("Say what could be faster in a recording, and by how much at a guess."),
    "recover": Entry("Save what a spool holds of a recording that was killed or crashed, and say where and why it ends."),
    "info": Entry("Show what a file holds: processes, options, events, environment, losses."),
    "validate": Entry("Check that a trace keeps what its format promises."),
    "completion": Entry("Print the completion of these commands for bash, zsh or fish."),
}

EXAMPLES = """\
examples:
  mindtorch profile train.py --epochs 1
  mindtorch top run.session --by shape
  mindtorch top trace.json.gz            a trace of torch, from any machine
  mindtorch flame run.session -o flame.svg
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given[0] if given else ""
    try:
        _run(name, given[1:])
        sys.stdout.flush()
    except UsageError as error:
        _fail(f"mindtorch {name}" if name in COMMANDS else "mindtorch", str(error), 2)
    except CommandError as error:
        _fail(f"mindtorch {name}", str(error), error.status)
    except BrokenPipeError:
        if name in COMMANDS and COMMANDS[name].runs_program:
            raise
        _leave_the_pipe()
    except KeyboardInterrupt:
        if name in COMMANDS and COMMANDS[name].runs_program:
            raise
        raise SystemExit(130) from None


def _run(name: str, rest: list[str]) -> None:
    if name in ("-h", "--help"):
        print(_help(), end="")
    elif name == "--version":
        print(f"mindtorch_v2, with the API of PyTorch {API_VERSION}")
    elif name not in COMMANDS:
        if not name:
            raise UsageError(f"a command is missing\n\n{_help()}")
        raise UsageError(f"unknown command {name!r}{near(name, COMMANDS)}\n`mindtorch --help` lists the commands")
    else:
        command = importlib.import_module(f"{__package__}.{name}")
        if COMMANDS[name].runs_program:
            command.main(rest)
        else:
            _run_command(command, parser_of(name).parse_args(rest))


def _run_command(command: Command, options: argparse.Namespace) -> None:
    try:
        command.run(options)
    except BrokenPipeError:
        raise
    except FileNotFoundError as error:
        raise CommandError(_no_file(error)) from None
    except OSError as error:
        raise CommandError(f"{error.strerror}: {error.filename}" if error.filename else str(error)) from None
    except ValueError as error:
        raise CommandError(str(error)) from None


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "".join(f"  {name:<{width}}  {entry.summary}\n" for name, entry in COMMANDS.items())
    return (
        "usage: mindtorch COMMAND [options]\n\n"
        "Record programs, and read what was recorded: saved sessions, and traces of torch, torch_npu and mindtorch_v2.\n\n"
        f"commands:\n{commands}\n"
        "`mindtorch COMMAND --help` tells more about each.\n\n"
        f"{EXAMPLES}"
    )


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command's arguments."""
    command = importlib.import_module(f"{__package__}.{name}")
    if COMMANDS[name].runs_program:
        return command.parser()
    parser = Parser(prog=f"mindtorch {name}", allow_abbrev=False, **described(command.__doc__ or ""))
    command.add_arguments(parser)
    return parser


def described(text: str) -> dict[str, Any]:
    """What a parser tells of a command, from its docstring: what it does, and behind `examples:` how it is used."""
    description, _, examples = text.strip().partition("\nexamples:\n")
    return {
        "description": description.strip(),
        "epilog": f"examples:\n{examples}" if examples else None,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


class Parser(argparse.ArgumentParser):
    """A parser that raises, and names what is near to a mistyped option or value."""

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        chosen = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if unknown:
            options = [option for action in self._actions for option in action.option_strings]
            message += near(unknown[1].partition("=")[0], options)
        elif chosen:
            message += near(chosen[1], re.findall(r"[\w-]+", chosen[2]))
        raise UsageError(f"{message}\n`{self.prog} --help` tells what it takes")


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'top'?`, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=2, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def _no_file(error: FileNotFoundError) -> str:
    path = str(error.filename or "")
    folder, name = os.path.split(path)
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        return f"there is no folder {folder!r}" if folder else f"there is no file {path!r}"
    return f"there is no file {path!r}{near(name, beside)}"


def _fail(prefix: str, reason: str, status: int) -> NoReturn:
    sys.stdout.flush()
    print(f"{prefix}: {reason}", file=sys.stderr)
    raise SystemExit(status)


def _leave_the_pipe() -> NoReturn:
    """Whoever read the output has gone: nothing is left to say, and Python must not say it again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(128 + 13)  # as a program has that SIGPIPE ended
