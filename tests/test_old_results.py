"""Results that version 0.1.0 stored are found and read: names, keys and words of its files stay."""

from dataclasses import replace
from pathlib import Path

from numpy.testing import assert_array_equal

from iclab.store import Store
from iclab.studies import double_descent
from iclab.studies.pretraining.runs import Draws
from iclab.studies.pretraining.sizes import Span

FEW = Span(0.5, 2.0, 2)
CASE = replace(
    double_descent.quick,
    alpha=(10.0,),
    tau=FEW,
    finite_tau=FEW,
    dimension=(4,),
    leverage_tau=(0.5,),
    leverage_dimension=5,
    drawn_tau=(0.5,),
    draws=Draws((4,), (1,), route="plain"),
)


def test_a_file_of_the_last_version_answers_for_its_case() -> None:
    store = Store(Path(__file__).parent / "data")  # written by 0.1.0, seeds 0 and 1
    assert store.missing(double_descent, CASE, 2) == []
    found = store.load(double_descent, CASE)
    assert found is not None
    again = double_descent.run(CASE, seeds=0)
    assert set(again["theory"].children) == set(found["theory"].children)
    for node in again["theory"].subtree:
        old = found[node.path].to_dataset()
        assert dict(node.to_dataset().sizes) == dict(old.sizes)
        assert set(node.to_dataset().variables) == set(old.variables)
    assert_array_equal(found["simulation/runs"].tau, [0.5])
    assert found["simulation/runs"].icl.dims == ("seed", "dimension", "tau")
