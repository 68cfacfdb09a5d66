"""Asking witnesses and labelling their answers, with a study made up for the purpose."""

import json
import platform
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

from iclab.claims import Agrees
from iclab.outcomes import LossCurve, labeled
from iclab.provenance import environment
from iclab.study import Preset, Study, View, case_json, joined, seed_numbers

TIME = np.linspace(0, 1, 5)


@dataclass(frozen=True)
class Case:
    height: float = 1.0
    sizes: tuple[int, ...] = (1, 2)


def theory(case: Case) -> dict[str, LossCurve]:
    return {"curve": LossCurve(TIME, case.height * np.exp(-TIME))}


def simulation(case: Case, *, key: Any) -> dict[str, LossCurve]:
    import jax

    noise = np.asarray(jax.random.normal(key, (5,)), dtype=float)
    return {"curve": LossCurve(TIME, case.height * np.exp(-TIME) + 0.01 * noise)}


def study(**changes: Any) -> Study:
    whole = {
        "name": "made-up",
        "question": "Is it so?\n\nWe ask.",
        "version": 1,
        "presets": {"quick": Preset(Case()), "full": Preset(Case(height=2.0), seeds=2)},
        "theory": theory,
        "simulation": simulation,
        "figure": lambda view, figure: None,
        "claims": (),
    }
    return Study(**(whole | changes))


def test_each_outcome_becomes_a_group_with_its_own_axes_and_a_seed_axis_where_seeds_matter() -> None:
    result = study().run(seeds=3)
    assert result["theory/curve"].to_dataset().loss.dims == ("time",)
    assert result["simulation/curve"].to_dataset().loss.dims == ("seed", "time")
    assert_array_equal(result["simulation/curve"].to_dataset().seed, [0, 1, 2])
    assert result["theory/curve"].to_dataset().loss.attrs["units"] == "label²"


def test_with_a_start_theory_and_simulation_answer_for_the_same_weights() -> None:
    def start(case: Case, seed: int) -> float:
        return float(seed)

    def shifted(case: Case, start: float, *, key: Any = None) -> dict[str, LossCurve]:
        return {"curve": LossCurve(TIME, start + TIME)}

    result = study(start=start, theory=shifted, simulation=shifted).run(seeds=(2, 5))
    for witness in ("theory", "simulation"):
        assert_array_equal(result[f"{witness}/curve"].to_dataset().loss[:, 0], [2, 5])


def test_more_seeds_leave_the_old_ones_as_they_were() -> None:
    few, many = (study().run(seeds=count)["simulation/curve"].to_dataset() for count in (2, 4))
    assert_array_equal(many.loss[:2], few.loss)


def test_results_of_single_seeds_join_into_the_result_of_all() -> None:
    apart = joined([study().run(seeds=(seed,)) for seed in (2, 0, 1)])
    xr.testing.assert_identical(
        apart["simulation/curve"].to_dataset(), study().run(seeds=3)["simulation/curve"].to_dataset()
    )
    assert_array_equal(apart.attrs["seeds"], [0, 1, 2])


def test_a_joined_result_names_each_environment_with_the_seeds_that_it_made(monkeypatch: pytest.MonkeyPatch) -> None:
    here = study().run(seeds=(0, 1, 5))
    monkeypatch.setattr("iclab.study.labels.environment", lambda: {**environment(), "commit": "abc"})
    there = study().run(seeds=(2, 4))
    both = joined([there, here])
    assert both.attrs["commit"] == f"{here.attrs['commit']} (seeds 0-1, 5); abc (seeds 2, 4)"
    assert both.attrs["versions"] == here.attrs["versions"]
    whole = joined([study().run(seeds=(3,)), both])  # joined again, each seed keeps its own
    assert whole.attrs["commit"] == f"{here.attrs['commit']} (seeds 0-1, 5); abc (seeds 2-4)"
    assert "origins" not in joined([there, there.copy()]).attrs


def test_a_result_names_the_kernel_of_its_processor_and_the_memory_that_it_took() -> None:
    attributes = study().run(seeds=2).attrs
    assert attributes["kernel"].split()[0] == platform.machine()
    assert np.all((attributes["memory"] > 2**24) & (attributes["memory"] < 2**40))  # of a process with NumPy loaded


def test_without_seeds_theory_answers_alone() -> None:
    result = study().run(seeds=0)
    assert list(result.children) == ["theory"]
    assert study().verdicts(result) == []


def test_a_study_of_theory_alone_simulates_nothing_however_many_seeds_are_asked_for() -> None:
    alone = study(simulation=None)
    assert list(alone.run(seeds=3).children) == ["theory"]
    assert alone.asked(3) == alone.asked((2, 5)) == ()
    with pytest.raises(ValueError, match="seeds must be a whole number >= 0"):
        alone.run(seeds=-1)


def test_claims_of_a_study_of_theory_alone_compare_theories() -> None:
    def twice(case: Case) -> dict[str, LossCurve]:
        return {"curve": LossCurve(TIME, np.exp(-TIME)), "other": LossCurve(TIME, 1.01 * np.exp(-TIME))}

    alike = Agrees("theory/other/loss", "Both say the same.", 0.02, theory="curve/loss")
    alone = study(simulation=None, theory=twice, claims=(alike,))
    (verdict,) = alone.verdicts(alone.run())
    assert verdict.holds
    assert verdict.value == pytest.approx(0.01)


def test_the_result_names_its_study_and_its_whole_case() -> None:
    attributes = study().run(Case(height=3.0), seeds=0).attrs
    assert attributes["study"] == "made-up"
    assert json.loads(attributes["case"]) == {"height": 3.0, "sizes": [1, 2]}


def test_infinities_in_a_case_are_written_as_words() -> None:
    assert json.loads(case_json(Case(height=float("inf")))) == {"height": "inf", "sizes": [1, 2]}


def test_the_case_of_another_study_is_refused() -> None:
    @dataclass(frozen=True)
    class Other:
        height: float = 1.0

    with pytest.raises(ValueError, match="case must be a Case of the study 'made-up'; got"):
        study().run(Other())


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        *((bad, "seeds must be a whole number >= 0") for bad in (-1, (0, -1), "12", ("1",), True, 1.7, (1.5,), None)),
        ((1, 1), "seeds must differ"),
    ],
)
def test_impossible_seeds_are_refused(seeds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        seed_numbers(seeds)


def test_seeds_are_a_count_or_a_list_of_whole_numbers_of_any_kind() -> None:
    assert seed_numbers(np.int64(2)) == (0, 1)
    assert seed_numbers(np.array([3, 1])) == (3, 1)
    assert seed_numbers(()) == ()


@pytest.mark.parametrize("answer", [np.arange(3.0), None, {"curve": np.arange(3.0)}, {"curve": None}])
def test_a_witness_that_returns_no_outcomes_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"theory of the study 'made-up' must return outcomes by name"):
        study(theory=lambda case: answer).run(seeds=0)


def test_a_claim_about_a_variable_that_is_not_there_names_those_that_are() -> None:
    misspelled = study(claims=(Agrees("curve/los", "It is so.", 0.1, theory="curve/loss"),))
    with pytest.raises(KeyError, match=r"got 'simulation/curve/los'. There are theory/curve/loss, simulation/curve"):
        misspelled.verdicts(misspelled.run(seeds=2))


def test_an_outcome_whose_array_lacks_an_axis_is_refused() -> None:
    def flat(case: Case) -> dict[str, LossCurve]:
        return {"curve": LossCurve(TIME, np.float64(1.0))}

    with pytest.raises(ValueError, match=r"LossCurve.loss must have the axes \('time',\); got shape \(\)"):
        study(theory=flat).run(seeds=0)


def test_a_study_written_for_the_last_version_is_told_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"a study has no full, quick; .* Write presets=\{"):
        study(quick=Case(), full=Case())
    for presets in (Case(), {"quick": Case()}, {"full": Preset(Case())}):
        with pytest.raises(ValueError, match="presets must hold a Preset for each name, quick at least"):
            study(presets=presets)
    with pytest.raises(TypeError, match=r"a figure reads view\.theory\.NAME"):
        View(Case(), study().run(seeds=0))["theory/curve"]


def test_an_array_may_not_be_named_as_an_axis() -> None:
    with pytest.raises(ValueError, match="tau must have another name than the axes"):
        labeled({"tau": [1.0, 2.0]}, tau=[5.0, 6.0])


@pytest.mark.parametrize(
    ("axes", "arrays", "message"),
    [
        ({"tau": ["few", "many"]}, {"icl": [1.0, 2.0]}, r"axis tau must be real .*; got \['few', 'many'\]. Number"),
        ({"tau": None}, {"icl": ["low", "high"]}, r"icl must be real numbers or .*; got \['low', 'high'\]. Number"),
        ({"tau": None}, {"icl": [1.0, 2.0j]}, r"icl must be real numbers or truth values; got \[1.0, 2j\]. .* apart"),
        ({"tau": [0.5, 2.0, 0.5]}, {"icl": [1.0, 2.0, 1.0]}, r"axis tau must not repeat; got \[0.5\] again. For an"),
        ({"tau": [0.5, 2.0]}, {}, r"labeled must be given an array; got only the axes \('tau',\). Add name=array"),
        ({"tau": 3}, {"icl": [1.0, 2.0]}, r'axis tau must be a list of points; got shape \(\). .* \{"tau": None\}'),
        ({"tau": [[0.5, 2.0]]}, {"icl": [1.0, 2.0]}, r"axis tau must be a list of points; got shape \(1, 2\). For"),
    ],
    ids=["words on an axis", "words", "complex", "repeated", "no array", "a number as axis", "two-dimensional axis"],
)
def test_what_no_axis_and_no_array_can_hold_is_refused_by_name(axes: dict, arrays: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        labeled(axes, **arrays)
