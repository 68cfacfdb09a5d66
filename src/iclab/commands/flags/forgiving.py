"""Words as they were typed, made into those of the flags that were meant: last names, commas, either dash."""

import re
from collections.abc import Iterator, Sequence

from iclab.commands.flags.table import Flag
from iclab.numerics import did_you_mean, require

__all__ = ["forgiven", "meant", "split"]

_COMMON = ("-h", "--help")


def forgiven(flags: Sequence[Flag], words: Sequence[str], *, prog: str) -> list[str]:
    """The words with whole names of flags, and the values of a list apart.

    Raises ValueError, with the nearest name, for a flag that there is none of and for a name that several share, for
    a word that is none of its choices, and for a list without a value.
    """
    given: list[str] = []
    for name, values in _grouped(words):
        if name is None:
            positional = next((flag for flag in flags if flag.positional), None)
            given += split(values) if positional and positional.several else values
            continue
        if name in _COMMON:
            given += [name, *values]
            continue
        flag, named = meant(flags, name, prog=prog, values=values)
        whole = "PATH" in flag.value or any("=" in value for value in values)  # NAME=VALUES keeps its commas
        values = split(values) if flag.several and not whole else values
        require(
            not flag.several or len(values) > 0,
            f"{flag.path[-1]} must hold at least one value; got none. Write {flag.name} {flag.typed or flag.value}.",
        )
        for value in values[: None if flag.several else 1] if flag.choices else ():
            require(
                value in flag.choices,
                f"{flag.name} must be one of {', '.join(flag.choices)}; got {value!r}."
                + did_you_mean(value, flag.choices),
            )
        alone = len(values) == 1 and not (flag.several or flag.switch)
        given += [f"{named}={values[0]}"] if alone else [named, *values]
    return given


def meant(flags: Sequence[Flag], word: str, *, prog: str, values: Sequence[str] = ()) -> tuple[Flag, str]:
    """The flag of a word, and its whole name: with `--no-` before it where a switch is turned off.

    Any end of a whole name that follows a dot will do where no other flag has it. Raises ValueError elsewhere.
    """
    plain = word.lower().replace("_", "-")
    names = {flag.name: (flag, flag.name) for flag in flags if not flag.positional}
    names |= {f"--no-{name[2:]}": (flag, f"--no-{name[2:]}") for name, (flag, _) in names.items() if flag.switch}
    if plain in names:
        return names[plain]
    ends = [name for name in names if name.endswith(f".{plain[2:]}")]
    if len(ends) > 1:
        raise ValueError(f"{word} must name one flag; got what is short for {', '.join(ends)}. Write one of these.")
    if ends:
        return names[ends[0]]
    shown = [name for name in names if not name.startswith("--no-")]
    short = {name.rpartition(".")[2].removeprefix("--"): name for name in shown}
    near = did_you_mean(plain[2:], [*short, *(name[2:] for name in shown)])
    near = re.sub(r"mean (.*)\?", lambda found: f"mean --{found[1]}?", near)
    got = " ".join([word, *values])
    raise ValueError(f"flags must be among {', '.join((*_COMMON, *shown))}; got {got}.{near} See `{prog} --help`.")


def split(values: Sequence[str]) -> list[str]:
    """The values of a list, which spaces or commas may part.

    Raises ValueError for numbers parted by commas inside words that are parted by spaces: they may be decimal commas.
    """
    within = [word for word in values if re.fullmatch(r"[-+]?\d+,\d+", word)]
    require(
        len(values) < 2 or not within,
        f"a list must have commas or spaces between its values; got both, as in {' '.join(values)[:60]}. Write "
        "decimals with a point.",
    )
    return [word for value in values for word in re.split(r"[\s,]+", value) if word]


def _grouped(words: Sequence[str]) -> Iterator[tuple[str | None, list[str]]]:
    """The name of each flag with the words that follow it; those before the first flag have no name."""
    name: str | None = None
    values: list[str] = []
    for word in words:
        if re.match(r"--?[A-Za-z]", word) and not re.match(r"-(inf|nan)", word):
            if name is not None or values:
                yield name, values
            name, equals, value = word.partition("=")
            values = [value] if equals else []
        else:
            values.append(word)
    if name is not None or values:
        yield name, values
