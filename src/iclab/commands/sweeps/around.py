"""`iclab sweep --around plan QUESTION`: the sizes around a planned answer, drawn, and whether they bear it out."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from iclab.commands.flags.parsing import parsed
from iclab.commands.sweeps.collect import written_view
from iclab.commands.sweeps.display import displayed
from iclab.commands.sweeps.page import write_page
from iclab.commands.terminal import writable
from iclab.commands.verdicts import INTERRUPTED, LEFT
from iclab.numerics import one_of, require
from iclab.planning.questions import QUESTIONS
from iclab.sweeps.around import RUN, around
from iclab.sweeps.engines.local import InProcess
from iclab.sweeps.limits import Stop
from iclab.sweeps.sweeping import begun, planned

__all__ = ["sweep_around"]


def sweep_around(words: Sequence[str]) -> int:
    """Draw runs around the answer to a question of `iclab plan`, and say whether they bear it out."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--seeds", type=int, default=None)
    own.add_argument("--out", type=Path, default=Path("results"))
    asked, rest = own.parse_known_args(list(words))
    require(
        len(rest) > 1 and rest[0] == "plan",
        "--around must be followed by a question of `iclab plan`, as in --around plan split --tokens 4000 "
        f"--dimension 16 --kappa 1; got {' '.join(rest) or 'none'}.",
    )
    name = one_of("question", rest[1], QUESTIONS)
    form = QUESTIONS[name]
    found = around(name, parsed(form, rest[2:], prog=f"iclab plan {name}", description=form.__doc__ or ""))
    plan, folder, stop = planned(RUN, [found.axis], asked.seeds, base=found.base), writable(asked.out), Stop()
    require(
        len(plan.seeds) > 1,
        f"seeds must be 2 at least, for errors of the means; got {len(plan.seeds)}. Leave --seeds out for 16.",
    )
    with stop.handling(), displayed(RUN.name, plan.cells) as watch:
        made = begun(plan, folder, InProcess(), stop=stop, watch=watch)
    now = made.progress()
    print(now)
    if now.missing:
        return INTERRUPTED if stop.asked == 2 else LEFT
    print(f"numbers: {written_view(folder, plan)}")
    print(f"page: {write_page(folder, [plan])[0]}")
    print(found.verdict(made.collect()))
    return 0
