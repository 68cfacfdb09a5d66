"""Theory changed on purpose turns a verdict of each study that it concerns; the right theory holds in all of them."""

import pytest

from iclab.studies import STUDIES
from tests.wrong_theories import depth, design, dynamics, modes, pretraining, related, strategies
from tests.wrong_theories.battery import Wrong, judged_under, stored

ROOMS = (depth, design, dynamics, modes, pretraining, related, strategies)
CASES = [(wrong, name) for room in ROOMS for wrong in room.WRONG for name in wrong.studies]
NAMES = list(dict.fromkeys(name for _, name in CASES))
UNCHANGED = ROOMS[0].WRONG[0].function


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_right_theory_holds_and_is_judged_as_stored(name: str) -> None:
    same = judged_under(Wrong("unchanged", UNCHANGED, lambda right: right, (name,)), name)
    assert same == [verdict.outcome for verdict in STUDIES[name].verdicts(stored(name))]
    assert set(same) == {"holds"}
    assert len(stored(name).attrs["seeds"]) != 1


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "name"), [pytest.param(*case, id=f"{case[0].name}: {case[1]}") for case in CASES])
def test_a_wrong_theory_is_noticed(wrong: Wrong, name: str) -> None:
    assert set(judged_under(wrong, name)) != {"holds"}


def test_sixty_and_more_wrong_theories_over_all_rooms_are_tried() -> None:
    assert sum(len(room.WRONG) for room in ROOMS) > 60
