"""The command `iclab completion`: a script that completes words in bash, zsh or fish."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import tyro

from iclab.commands.flags.parsing import parsed
from iclab.commands.flags.scripts import script

__all__ = ["ABOUT", "Completion", "completion"]

ABOUT = "Print a script that completes commands, studies, flags and choices as you type."

EXAMPLES = (
    "iclab completion bash > ~/.local/share/bash-completion/completions/iclab",
    "iclab completion zsh > ~/.zfunc/_iclab",
    "iclab completion fish > ~/.config/fish/completions/iclab.fish",
)


@dataclass(frozen=True)
class Completion:
    """The shell that completes."""

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]]  # the shell: bash, zsh or fish
    debug: bool = False  # show the traceback of an error


def completion(words: Sequence[str]) -> int:
    """Print the script. Returns the exit code."""
    options = parsed(Completion, words, prog="iclab completion", description=ABOUT, examples=EXAMPLES)
    print(script(options.shell))
    return 0
