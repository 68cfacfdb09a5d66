"""Scripts that complete words in a shell, with the commands, studies, flags and choices that there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iclab.commands.flags.cases import form_of
from iclab.commands.flags.table import Flag, flags_of
from iclab.commands.inputs import NAMES

__all__ = ["commands", "script"]


@dataclass(frozen=True)
class _Words:
    """The words behind a command, and behind a study or question of it."""

    first: tuple[str, ...]  # names that may stand behind the command
    flags: Mapping[str, Sequence[Flag]]  # by such a name; "" without one
    data: bool = False  # True where data may stand in the place of a spectrum


def script(shell: str) -> str:
    """The script of a shell: bash, zsh or fish."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands())


def commands() -> dict[str, _Words]:
    """The words of each command."""
    from iclab.commands.compare import STUDIES as COMPARED
    from iclab.commands.compare import Compare
    from iclab.commands.completion import Completion
    from iclab.commands.explore import Explore
    from iclab.commands.report import Report
    from iclab.commands.results import Results
    from iclab.commands.run import RunOptions
    from iclab.commands.studies import Studies
    from iclab.commands.sweeps.flags import Cancel, Collect, Status, Work
    from iclab.commands.sweeps.flags import Options as SweepOptions
    from iclab.inspection.flags import Inspect
    from iclab.planning.questions import QUESTIONS
    from iclab.studies import STUDIES

    def asking(options: type, *, data: bool = False, **others: type) -> _Words:
        own = {name: flags_of(form_of(study.quick, options)) for name, study in STUDIES.items()}
        more = {name: flags_of(form) for name, form in others.items()}
        return _Words((*more, *own), {"": flags_of(options), **own, **more}, data)

    def alone(form: Any, first: Sequence[str] = (), *, data: bool = False) -> _Words:
        flags = flags_of(form)
        choices = next((flag.choices for flag in flags if flag.positional), ())
        return _Words(tuple(first) or choices, {"": flags}, data)

    return {
        "run": asking(RunOptions, data=True), "report": asking(Report, data=True),
        "compare": alone(Compare, tuple(COMPARED), data=True),
        "explore": alone(Explore), "studies": alone(Studies),
        "plan": _Words(tuple(QUESTIONS), {"": (), **{name: flags_of(form) for name, form in QUESTIONS.items()}}),
        "inspect": alone(Inspect), "sweep": asking(SweepOptions, work=Work, status=Status, cancel=Cancel),
        "collect": alone(Collect), "results": alone(Results), "completion": alone(Completion),
    }  # fmt: skip


def _names(words: _Words, first: str = "") -> list[str]:
    """Each flag behind such a name as short as it can be."""
    flags = words.flags[first]
    shorts = [flag.short for flag in flags]
    short = [flag.short if shorts.count(flag.short) == 1 else flag.name for flag in flags if not flag.positional]
    return [*short, *(NAMES if words.data else ()), "--help"]


def _choices(commands: Mapping[str, _Words]) -> dict[str, tuple[str, ...]]:
    every = [flag for words in commands.values() for flags in words.flags.values() for flag in flags]
    return {flag.short: flag.choices for flag in every if flag.choices and not flag.positional}


def _shell(commands: Mapping[str, _Words], *, given: str, offered: str) -> str:
    """The cases of a POSIX shell: `given` are the words so far, `offered` is said of those that are offered."""
    cases: list[tuple[str, Sequence[str]]] = []
    for name, words in commands.items():
        cases += [(f'"{name}:{first}:-"*', _names(words, first)) for first in words.flags if first]
        cases.append((f'"{name}:"*":-"*', _names(words)))
        cases += [(f'"{name}:"*', words.first)] if words.first else []
    lines = ['  case "$before" in']
    for flag, choices in _choices(commands).items():
        lines.append(f"    {flag}) {offered.format(' '.join(choices))}; return ;;")
    lines += ["  esac", f'  case "{given}" in']
    return "\n".join(
        [*lines, *(f"    {case}) {offered.format(' '.join(names))} ;;" for case, names in cases), "  esac"]
    )


def _bash(commands: Mapping[str, _Words]) -> str:
    offered = 'COMPREPLY=($(compgen -W "{}" -- "$word"))'
    cases = _shell(commands, given="${COMP_WORDS[1]}:${COMP_WORDS[2]}:$word", offered=offered)
    return f"""# completion of iclab in bash
_iclab() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    {offered.format(" ".join([*commands, "--help", "--version"]))}
    return
  fi
{cases}
}}
complete -o default -F _iclab iclab"""


def _zsh(commands: Mapping[str, _Words]) -> str:
    offered = "compadd -- {}"
    cases = _shell(commands, given="$words[2]:$words[3]:$word", offered=offered)
    return f"""#compdef iclab
# completion of iclab in zsh
_iclab() {{
  local word="$words[CURRENT]" before="$words[CURRENT-1]"
  if (( CURRENT == 2 )); then
    {offered.format(" ".join([*commands, "--help", "--version"]))}
    return
  fi
{cases}
  [[ "$word" == -* ]] || _files
}}
if [ "$funcstack[1]" = _iclab ]; then _iclab "$@"; else compdef _iclab iclab; fi"""


def _fish(commands: Mapping[str, _Words]) -> str:
    lines = ["# completion of iclab in fish"]
    none = "not __fish_seen_subcommand_from " + " ".join(commands)
    lines += [f"complete -c iclab -f -n '{none}' -a '{' '.join([*commands, '--help', '--version'])}'"]
    for name, words in commands.items():
        seen = f"__fish_seen_subcommand_from {name}"
        if words.first:
            lines.append(f"complete -c iclab -f -n '{seen}' -a '{' '.join(words.first)}'")
        for first in words.flags:
            when = f"{seen}; and __fish_seen_subcommand_from {first}" if first else seen
            lines.append(f"complete -c iclab -n '{when}' -a '{' '.join(_names(words, first))}'")
    for flag, choices in _choices(commands).items():
        lines.append(f"complete -c iclab -x -l {flag[2:]} -a '{' '.join(choices)}'")
    return "\n".join(lines)
