"""Print the completion of these commands for bash, zsh or fish.

examples:
  eval "$(mindtorch completion bash)"           in ~/.bashrc
  eval "$(mindtorch completion zsh)"            in ~/.zshrc
  mindtorch completion fish | source            in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
import json

from .frame import COMMANDS, parser_of

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SHELLS), help="bash, zsh or fish")
    parser.add_argument("--json", action="store_true", help="print the commands and their options as JSON")


def run(options: argparse.Namespace) -> None:
    found = _options()
    print(json.dumps(found, indent=2) if options.json else SHELLS[options.shell](found), end="\n" if options.json else "")


def _options() -> dict[str, list[str]]:
    """The options of each command."""
    found = {}
    for name in COMMANDS:
        parser = parser_of(name)
        choices = [str(choice) for action in parser._actions if not action.option_strings for choice in action.choices or ()]
        found[name] = [*(option for action in parser._actions for option in action.option_strings), *choices]
    return found


def _bash(found: dict[str, list[str]]) -> str:
    cases = "".join(f'    {name}) words="{" ".join(options)}" ;;\n' for name, options in found.items())
    return f"""\
_mindtorch() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(found)} --help --version" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _mindtorch mindtorch
"""


def _zsh(found: dict[str, list[str]]) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(found)}"


def _fish(found: dict[str, list[str]]) -> str:
    lines = [f"complete -c mindtorch -n __fish_use_subcommand -a {name} -d {_quoted(COMMANDS[name].summary)}\n" for name in found]
    for name, options in found.items():
        for option in options:
            how = (
                f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}" if option.startswith("-") else f"-a {option}"
            )
            lines.append(f"complete -c mindtorch -n '__fish_seen_subcommand_from {name}' {how}\n")
    return "".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
