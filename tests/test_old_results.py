"""Results that version 0.1.0 stored are found and read: names, keys and words of its files stay."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

from iclab import Ratios, __version__
from iclab.outcomes import Labeled, labeled, parts
from iclab.store import Store, digest, read
from iclab.studies.pretraining.runs import ERRORS, SIZES, Draws, Grid
from iclab.studies.pretraining.sizes import Span, around, bounds, law_of, table
from iclab.study import Key, Preset, Study
from iclab.theory.finite_size import leverage_errors, pool_errors
from iclab.theory.generalization import errors


@dataclass(frozen=True)
class OldDraws:
    """Drawn runs, as a case of 0.1.0 had them."""

    dimension: tuple[int, ...] = (4,)
    each: tuple[int, ...] = (1,)
    route: str = "plain"


@dataclass(frozen=True)
class Case:
    """A case of double-descent in 0.1.0."""

    alpha: tuple[float, ...] = (10.0,)
    kappa: float = 0.5
    noise: float = 0.01
    ridge: float = 1e-5
    tau: Span = Span(0.5, 2.0, 2)
    finite_alpha: float = 10.0
    finite_tau: Span = Span(0.5, 2.0, 2)
    dimension: tuple[int, ...] = (4,)
    leverage_tau: tuple[float, ...] = (0.5,)
    leverage_dimension: int = 5
    drawn_tau: tuple[float, ...] = (0.5,)
    draws: OldDraws = OldDraws()

    @property
    def drawn(self) -> Grid:
        """The drawn runs."""
        sizes = parts(self, "kappa", "noise", "ridge") | {"alpha": self.finite_alpha, "tau": self.drawn_tau}
        return Grid.over(self.draws.dimension, **sizes)


def theory(case: Case) -> dict[str, Labeled]:
    """The groups and arrays of 0.1.0."""
    tau, some = around(case.tau.grid(), [1.0]), around(case.finite_tau.grid(), [1.0, 1.25])

    def predicted(dimension: int, tau: float) -> object:
        law = law_of(dimension, alpha=case.finite_alpha, kappa=case.kappa, noise=case.noise)
        prediction = leverage_errors if dimension == case.leverage_dimension else pool_errors
        return prediction(law, round(tau * dimension**2), ridge=case.ridge)

    curves, limit = (errors(Ratios(10.0, case.kappa, one, case.noise), ridge=case.ridge) for one in (tau, some))
    at = table(predicted, dimension=case.dimension, tau=case.drawn_tau)
    return {
        "bounds": bounds(case.noise),
        "curves": labeled(
            {"alpha": case.alpha, "tau": tau}, **{name: getattr(curves, name)[None] for name in ERRORS}
        ),
        "limit": labeled({"tau": some}, **parts(limit, *ERRORS)),
        "pool": table(predicted, dimension=case.dimension, tau=some),
        "leverage": table(predicted, dimension=[case.leverage_dimension], tau=case.leverage_tau),
        "limit_at": case.drawn.limit(),
        "pool_at": at,
        "sizes": case.drawn.sizes(),
        "runs": case.drawn.limit(),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of the drawn runs."""
    return {"runs": case.drawn.simulated(Draws(case.draws.dimension, case.draws.each, case.draws.route), key=key)}


CASE = Case()
OLD = Study(
    name="double-descent", question="What did version 0.1.0 store?", version=2,
    presets={"quick": Preset(CASE), "full": Preset(replace(CASE, noise=0.1))}, theory=theory, simulation=simulation,
    figure=lambda view, figure: None, claims=(), vocabulary=SIZES,
)  # fmt: skip


DATA = Path(__file__).parent / "data"  # a file written by 0.1.0, seeds 0 and 1


@pytest.fixture
def copied(tmp_path: Path) -> Store:
    """A folder of 0.1.0: that file alone."""
    store = Store(tmp_path)
    shutil.copy(DATA / store.path(OLD, CASE).name, tmp_path)
    return store


def test_a_file_of_the_last_version_answers_for_its_case() -> None:
    store = Store(DATA)
    assert store.missing(OLD, CASE, 2) == []
    found = store.load(OLD, CASE)
    assert found is not None
    again = OLD.run(CASE, seeds=0)
    assert set(again["theory"].children) == set(found["theory"].children)
    for node in again["theory"].subtree:
        old = found[node.path].to_dataset()
        assert dict(node.to_dataset().sizes) == dict(old.sizes)
        assert set(node.to_dataset().variables) == set(old.variables)
    assert_array_equal(found["simulation/runs"].tau, [0.5])
    assert found["simulation/runs"].icl.dims == ("seed", "dimension", "tau")


def test_what_the_last_version_stored_alone_stays_a_file_until_a_seed_is_added(copied: Store) -> None:
    path = copied.path(OLD, CASE)
    before = path.read_bytes()
    assert digest(copied.fetch(OLD, CASE, 2)) == digest(read(path))
    assert path.read_bytes() == before
    assert not (copied.folder / "parts").exists()


def test_seeds_of_the_last_version_are_kept_beside_new_ones_with_their_own_origin(copied: Store) -> None:
    path = copied.path(OLD, CASE)
    old = read(path)
    whole = copied.fetch(OLD, CASE, 3)
    for found in (whole, read(path)):
        runs = found["simulation/runs"].to_dataset()
        assert_array_equal(runs.icl[:2], old["simulation/runs"].icl)
        assert found.attrs["iclab"] == f"0.1.0 (seeds 0-1); {__version__} (seeds 2)"
        assert_array_equal(found.attrs["seconds"][:2], old.attrs["seconds"])
    path.unlink()
    assert copied.missing(OLD, CASE, 4) == [3]
    assert digest(copied.fetch(OLD, CASE, 3)) == digest(whole)


def test_a_broken_file_of_the_last_version_is_kept(copied: Store) -> None:
    path = copied.path(OLD, CASE)
    broken = path.read_bytes()[:-100]
    path.write_bytes(broken)
    with pytest.warns(UserWarning, match=f"{path.name} is not whole .*; it is kept as {path.name}.broken"):
        copied.fetch(OLD, CASE, 1)
    assert path.with_name(f"{path.name}.broken").read_bytes() == broken
    assert read(path).attrs["seeds"].tolist() == [0]


def test_a_file_of_the_last_version_that_answers_otherwise_than_a_part_is_kept(copied: Store, tmp_path: Path) -> None:
    path = copied.path(OLD, CASE)
    result = read(path)
    result["simulation/runs/icl"] = result["simulation/runs/icl"] * 1.02
    other = Store(tmp_path / "other")
    other.add(OLD, CASE, result)
    shutil.move(other.folder / "parts", copied.folder / "parts")
    content = path.read_bytes()
    with pytest.warns(UserWarning, match="its answer for seed 0 differs from that in a part"):
        copied.fetch(OLD, CASE, 2)
    assert path.with_name(f"{path.name}.broken").read_bytes() == content
