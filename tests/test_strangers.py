"""Problems that nobody has tuned: rates and steps follow from them, and right theory does not fail."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from iclab import Regression
from iclab.commands.main import main
from iclab.store import case_key
from iclab.studies import STUDIES
from iclab.study import Study, case_json

TRAINED = ("abrupt-drop", "staircase")
COUNT = 40


def drawn_problem(number: int) -> Regression:
    """A problem of up to six dimensions, a spectrum over three decades and up to 100 examples, two of three noisy."""
    rng = np.random.default_rng(1000 + number)
    spectrum = 10 ** rng.uniform(-2.5, 0.5, rng.integers(1, 7))
    length = round(float(np.exp(rng.uniform(0, np.log(100)))))
    noise = round(float(10 ** rng.uniform(-2, 0.5)), 3) if number % 3 else 0.0
    return Regression(tuple(sorted((float(f"{value:.3g}") for value in spectrum), reverse=True)), length, noise)


def outcomes(study: Study, problem: Regression, seeds: int) -> dict[str, str]:
    result = study.run(study.case(problem=problem), seeds)
    return {verdict.claim: verdict.outcome for verdict in study.verdicts(result)}


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("number", [0, 3])
def test_a_problem_of_nobodys_choice_is_judged_without_a_false_alarm(name: str, number: int) -> None:
    found = outcomes(STUDIES[name], drawn_problem(number), seeds=2)
    assert "does not hold" not in found.values()
    assert "holds" in found.values()


@pytest.mark.slow
def test_forty_problems_raise_at_most_three_false_alarms_and_none_twice_on_one_claim() -> None:
    alarms: Counter[tuple[str, str]] = Counter()
    judged: Counter[str] = Counter()
    for number in range(COUNT):
        for name in TRAINED:
            study = STUDIES[name]
            found = outcomes(study, drawn_problem(number), study.presets["quick"].seeds)
            judged.update(found.values())
            alarms.update((name, claim) for claim, outcome in found.items() if outcome == "does not hold")
    assert judged.total() >= 240
    assert alarms.total() <= 3, alarms
    assert max(alarms.values(), default=0) <= 1, alarms
    assert judged["holds"] > judged.total() / 2, judged  # an instrument that always says open is none


@pytest.mark.parametrize("name", TRAINED)
def test_the_published_problem_keeps_its_published_numbers(name: str) -> None:
    study = STUDIES[name]
    assert study.case() == study.quick
    assert study.case("full") == study.full
    assert study.case(problem=study.quick.problem, steps=100).rate == study.quick.rate
    assert study.case(sequences=(50, 100, 200)).steps == study.quick.steps


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("change", [{"problem": Regression((2.0, 1.0), 5)}, {"heads": 3}, {"initial": 1e-3}])
def test_what_is_not_stated_follows_and_what_is_stated_stays(name: str, change: dict) -> None:
    study = STUDIES[name]
    free, slow, short = (study.case(**change, **more) for more in ({}, {"rate": 1e-4}, {"steps": 77}))
    assert (free.rate, free.steps) != (study.quick.rate, study.quick.steps)
    assert free == study.case(**change)
    assert (slow.rate, short.steps) == (1e-4, 77)
    assert study.case(**change, rate=1e-4, steps=77).steps == 77
    assert case_key(study, free) != case_key(study, study.quick)
    assert f'"rate": {free.rate}' in case_json(free)  # numbers, before the case is hashed


def test_a_finer_rate_takes_more_steps_and_fewer_sequences_a_finer_rate() -> None:
    study, problem = STUDIES["abrupt-drop"], Regression((0.5, 0.4), 10)
    free = study.case(problem=problem)
    assert study.case(problem=problem, rate=free.rate / 3).steps == pytest.approx(3 * free.steps, rel=0.1)
    assert study.case(problem=problem, sequences=(50, 100, 200)).rate < free.rate
    assert study.case(problem=Regression((50.0, 40.0), 10)).rate < free.rate / 1000  # the sharpness is a square


def test_a_last_drop_that_takes_too_long_is_not_waited_for() -> None:
    case = STUDIES["staircase"].case(problem=Regression((3.0, 0.003), 100))
    assert case.steps < 2_000_000
    limits = STUDIES["staircase"].run(case, 0)["theory/limits"]
    assert float(limits.steps[0]) > case.steps


def test_fields_that_a_case_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="a field of the case must be one of problem, heads"):
        STUDIES["abrupt-drop"].case(eigenvalues=(1.0,))


def test_flags_override_what_follows(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = [
        "run",
        "abrupt-drop",
        "--problem.eigenvalues",
        "2",
        "1",
        "--seeds",
        "0",
        "--out",
        str(tmp_path),
        "--json",
    ]
    cases = []
    for more in ([], ["--steps", "500"], ["--rate=0.001"]):
        assert main([*words, *more]) == 0
        shown = capsys.readouterr()
        cases.append(json.loads(shown.out)["case"])
        assert "follow from the problem" in shown.err
    study = STUDIES["abrupt-drop"]
    free = study.case(problem=Regression((2.0, 1.0), 31))
    assert [cases[0][name] for name in ("rate", "steps")] == [free.rate, free.steps]
    assert cases[1]["steps"] == 500
    assert cases[2]["rate"] == 0.001


def test_help_says_what_follows_from_the_problem(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        main(["run", "abrupt-drop", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "Rate and steps follow from problem, heads and initial where these are changed, unless flags state" in shown
    )
