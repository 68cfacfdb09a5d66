"""The flags of one study: its case, the problem apart from the numerics, and the options of a command."""

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any, TypeVar

import tyro

from iclab.commands.flags.forgiving import forgiven
from iclab.commands.flags.parsing import parsed
from iclab.commands.flags.table import Flag, flags_of
from iclab.commands.terminal import note
from iclab.problem import Ratios, Regression
from iclab.study import Study

__all__ = ["asked", "case_flags", "examples", "form_of"]

Options = TypeVar("Options")

_OF_PROBLEMS = {entry.name for kind in (Regression, Ratios) for entry in fields(kind)} | {"dimension"}


def form_of(case: Any, options: type) -> Any:
    """The dataclass of a case and of options, whose flags have no prefix."""
    parts: list[Any] = [
        ("case", Annotated[type(case), tyro.conf.arg(name="")], field(default=case)),
        ("options", Annotated[options, tyro.conf.arg(name="")], field(default=options())),
    ]
    return make_dataclass("Case", parts)


def asked(
    study: Study, default: Any, words: Sequence[str], options: type[Options], *, command: str
) -> tuple[Any, Options]:
    """The case that the words state, beginning from another, with all that follows from it, and the options.

    Raises ValueError for flags and values that do not fit.
    """
    about = study.question
    if study.settle is not None:
        about += f"\n\n{study.settle.__doc__ or ''}"

    form = form_of(default, options)
    flags = flags_of(form)
    own = case_flags(study, flags)

    of_case = [flag for group in own.values() for flag in group]

    def groups(_: Sequence[Flag]) -> Mapping[str, Sequence[Flag]]:
        return {**own, "what is computed and written": [flag for flag in flags if flag not in of_case]}

    prog = f"iclab {command} {study.name}"
    chosen = parsed(
        form, words, prog=prog, description=about, groups=groups, examples=examples(study, command, flags)
    )  # fmt: skip
    whole = {word.partition("=")[0] for word in forgiven(flags, words, prog=prog)}
    stated = {flag.path[0] for flag in of_case if flag.name in whole}
    settled = study.settled(chosen.case, stated, like=default)
    follows = [f"{name} {value}" for name, value in vars(settled).items() if value != getattr(chosen.case, name)]
    if follows:
        note(f"{study.name}: {', '.join(follows)} follow from the problem")
    return settled, chosen.options


def case_flags(study: Study, flags: Sequence[Flag]) -> dict[str, list[Flag]]:
    """The flags of a case: those of its problem, and those of how it is computed."""
    names = {entry.name for entry in fields(study.quick)}
    own = [flag for flag in flags if flag.path[0] in names]
    whole = any(flag.path[0] == "problem" for flag in own)
    problem = [flag for flag in own if (flag.path[0] == "problem" if whole else _singular(flag) in _OF_PROBLEMS)]
    return {"the problem": problem, "the numerics": [flag for flag in own if flag not in problem]}


def examples(study: Study, command: str, flags: Sequence[Flag]) -> list[str]:
    """A few lines to type."""
    first = f"iclab {command} {study.name}"
    of_problem = {flag.short: flag for flag in case_flags(study, flags)["the problem"]}
    changed = [
        f"{name} {of_problem[name].typed}" for name in ("--eigenvalues", "--context-length") if name in of_problem
    ]
    more = "--seeds 2 --page" if command == "run" else "--full"
    return [first, *([f"{first} {' '.join(changed)}"] if changed else []), f"{first} {more}"]


def _singular(flag: Flag) -> str:
    name = flag.path[0]
    return name if name in _OF_PROBLEMS else name.removesuffix("s")
