"""Data for networks: laws of what is drawn, what counts, and that keys decide everything."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.simulation.keys import key_of
from iclab.simulation.sequences import (
    Batch,
    FixedRegression,
    Linear,
    ModularAddition,
    PeriodicSequences,
    RegressionContexts,
    SparseLinear,
    TwoLayer,
)

KINDS = [
    RegressionContexts(tasks=3),
    RegressionContexts(form="interleaved", functions=SparseLinear(2)),
    FixedRegression(RegressionContexts(3, 5, batch_size=6, form="paper"), 12),
    PeriodicSequences(),
    ModularAddition(5, 0.4, "equation"),
]


QUICKLY = {"xla_backend_optimization_level": 0}  # compiled in half the time


@partial(jax.jit, static_argnums=0, compiler_options=QUICKLY)
def _fixed(data: Any, key: jax.Array) -> Any:
    return data.fixed(key)


@partial(jax.jit, static_argnums=(0, 1, 2), compiler_options=QUICKLY)
def _drawn(data: Any, kind: str, count: tuple[int, ...], fixed: Any, key: jax.Array) -> Batch:
    return getattr(data, kind)(fixed, key, *count)


@partial(jax.jit, static_argnums=0, compiler_options=QUICKLY)
def _split(data: ModularAddition, fixed: Any) -> tuple[Batch, Batch]:
    return data.batch(fixed, key_of(0)), data.held_out(fixed)


def fixed(data: Any, once: int = 9) -> Any:
    return jax.tree.map(np.asarray, _fixed(data, key_of(once)))


def drawn(data: Any, seed: int = 0, kind: str = "batch", *count: int, once: int = 9) -> Batch:
    return Batch(*map(np.asarray, _drawn(data, kind, count, fixed(data, once), key_of(seed))))


@pytest.mark.parametrize("data", KINDS, ids=lambda data: type(data).__name__)
def test_a_batch_is_what_its_law_says_and_its_key_decides(data: Any) -> None:
    first, again = drawn(data), drawn(data)
    for part, same in zip(first, again, strict=True):
        assert_array_equal(part, same)
    asked = 1 if isinstance(data, ModularAddition) else data.length
    assert first.target.shape == first.weight.shape == (len(first.tokens), asked)
    assert first.tokens.shape[1] == data.length
    if data.loss == "square":
        assert first.tokens.shape[2] == data.features
        assert {part.dtype for part in first} == {np.dtype("float32")}
    else:
        assert first.tokens.dtype == first.target.dtype == np.dtype("int32")
        assert (first.tokens.min(), first.tokens.max()) == (0, data.vocabulary - 1)
        assert first.target.max() == data.outputs - 1
    if not isinstance(data, ModularAddition):
        assert np.any(first.tokens != drawn(data, 1).tokens)
    shares = isinstance(data, FixedRegression | ModularAddition) or getattr(data, "tasks", None) is not None
    assert np.any(first.tokens != drawn(data, once=8).tokens) == shares


@pytest.mark.parametrize("data", [KINDS[0], KINDS[3]])
def test_double_precision_elsewhere_changes_nothing(data: Any) -> None:
    with jax.enable_x64(True):
        double = drawn(data)
    for part, same in zip(drawn(data), double, strict=True):
        assert part.dtype == same.dtype
        assert_allclose(part, same, rtol=1e-6, atol=1e-6)  # compiled anew, in single precision


@pytest.mark.parametrize("functions", [Linear(), SparseLinear(2), TwoLayer(3)])
def test_labels_have_mean_zero_variance_one_and_noise(functions: Any) -> None:
    law = RegressionContexts(5, 1, noise=0.5, functions=functions, form="paper")
    _, labels = law.examples(drawn(law, 0, "test", 40_000))
    last = labels[:, -1].astype(float)
    assert abs(last.mean()) < 4 * last.std() / np.sqrt(len(last))
    squares = last**2
    assert abs(squares.mean() - 1.5) < 4 * squares.std() / np.sqrt(len(last))


def test_inputs_have_covariance_one_over_the_dimension() -> None:
    law = RegressionContexts(5, 1, noise=0.5, form="paper")
    inputs, _ = law.examples(drawn(law, 0, "test", 40_000))
    rows = inputs.reshape(-1, 5).astype(float)
    second = rows.T @ rows / len(rows)
    assert_allclose(second, np.eye(5) / 5, atol=4 * np.sqrt(2) / 5 / np.sqrt(len(rows)))  # 4 standard errors


def test_noiseless_labels_are_those_of_the_pool() -> None:
    law = KINDS[0]
    pool, (inputs, labels) = fixed(law), law.examples(drawn(law, 0, "test_of_pool", 200))
    assert pool.shape == (3, 4)
    missed = np.abs(labels[:, None] - np.einsum("pnd,kd->pkn", inputs, pool)).max(axis=2)
    assert_allclose(missed.min(axis=1), 0, atol=1e-5)  # single precision
    share = np.bincount(missed.argmin(axis=1), minlength=3) / 200
    assert_allclose(share, 1 / 3, atol=4 * np.sqrt(2 / 9 / 200))  # 4 standard errors
    inputs, labels = law.examples(drawn(law, 0, "test", 200))  # new tasks are not of the pool
    assert np.abs(labels[:, None] - np.einsum("pnd,kd->pkn", inputs, pool)).max(axis=2).min() > 0.01


def test_sparse_tasks_have_so_many_entries_at_any_place() -> None:
    tasks = fixed(RegressionContexts(6, 2, tasks=3000, functions=SparseLinear(2)))
    assert_array_equal(np.count_nonzero(tasks, axis=1), 2)
    assert_allclose(np.mean(tasks != 0, axis=0), 1 / 3, atol=4 * np.sqrt(2 / 9 / 3000))  # 4 standard errors


def test_a_network_of_one_neuron_answers_by_hand() -> None:
    tasks, inputs = jnp.array([[2.0, -1.0, 3.0]]), jnp.array([[[1.0, 1.0], [0.0, 1.0]]])
    assert_allclose(
        TwoLayer(1).values(tasks, inputs), [[3 * np.sqrt(2), 0]], rtol=1e-6
    )  # 3 max(0, 2 − 1), 3 max(0, −1)


def test_forms_show_the_same_contexts_in_their_own_tokens() -> None:
    forms = {
        form: RegressionContexts(2, 3, 0.1, form=form, batch_size=4) for form in ("pair", "paper", "interleaved")
    }
    batches = {form: drawn(law) for form, law in forms.items()}
    inputs, labels = forms["pair"].examples(batches["pair"])
    for form, law in forms.items():
        for part, same in zip((inputs, labels), law.examples(batches[form]), strict=True):
            assert_array_equal(part, same)
    pair, paper, interleaved = batches.values()
    assert_array_equal(pair.tokens[..., :3], paper.tokens)
    assert_array_equal(pair.tokens[..., 3], [[0, 0, 0, 1]] * 4)
    assert_array_equal(paper.tokens[:, :-1, 2], labels[:, :-1])
    assert_array_equal(paper.tokens[:, -1, 2], 0)  # the label of the query is not shown
    assert_array_equal(pair.weight, [[0, 0, 0, 1]] * 4)
    assert_array_equal(interleaved.weight, [[1, 0, 1, 0, 1, 0, 1]] * 4)
    assert_array_equal(interleaved.tokens[:, 1::2], np.pad(labels[:, :-1, None], ((0, 0), (0, 0), (2, 0))))
    assert_array_equal(interleaved.tokens[:, ::2, 2], 0)
    for form, law in forms.items():
        asked = batches[form].target[:, law.query_positions]
        assert_array_equal(asked, labels[:, list(law.examples_before)])
        assert batches[form].weight.sum() == asked.size


def test_a_fixed_set_is_used_without_repeats() -> None:
    data = KINDS[2]
    _, every = fixed(data)
    known = {row.tobytes(): place for place, row in enumerate(every.tokens)}
    for seed in range(3):
        batch = drawn(data, seed)
        places = [known[row.tobytes()] for row in batch.tokens]
        assert len(set(places)) == 6
        assert_array_equal(batch.target, every.target[places])
    whole = FixedRegression(RegressionContexts(3, 5, batch_size=12, form="paper"), 12)
    assert whole.batch(("", every), key_of(0)) is every


@pytest.mark.parametrize("data", [KINDS[2], FixedRegression(RegressionContexts(3, 5, tasks=4, batch_size=6), 12)])
def test_tests_of_the_pool_have_the_tasks_of_the_set_in_new_contexts(data: FixedRegression) -> None:
    pool, every = fixed(data)
    assert pool.shape == (data.contexts.tasks or 12, 3)
    batch = drawn(data, 0, "test_of_pool", 40)
    for one in (every, batch):
        inputs, labels = data.contexts.examples(one)
        missed = np.abs(labels[:, None] - np.einsum("pnd,kd->pkn", inputs, pool)).max(axis=2)
        assert_allclose(missed.min(axis=1), 0, atol=1e-5)  # single precision
        assert len(set(missed.argmin(axis=1).tolist())) > 2
    assert not {row.tobytes() for row in batch.tokens} & {row.tobytes() for row in every.tokens}
    inputs, labels = data.contexts.examples(drawn(data, 0, "test", 40))
    assert np.abs(labels[:, None] - np.einsum("pnd,kd->pkn", inputs, pool)).max(axis=2).min() > 0.01


def test_a_token_counts_once_it_recurs_and_then_tells_the_next() -> None:
    data = PeriodicSequences(vocabulary=1000, length=12, shortest=3, longest=5)
    batch = drawn(data, 0, "test", 300)
    assert_array_equal(batch.tokens[:, 1:], batch.target[:, :-1])
    starts = np.argmax(batch.weight, axis=1)
    assert_allclose(np.bincount(starts, minlength=6)[3:] / 300, 1 / 3, atol=4 * np.sqrt(2 / 9 / 300))
    for tokens, target, weight, period in zip(*batch, starts, strict=True):
        counted = np.flatnonzero(weight)
        assert_array_equal(counted, np.arange(period, 11))
        assert_array_equal(tokens[counted], tokens[counted - period])
        assert_array_equal(target[counted], target[counted - period])
    assert np.mean(np.sort(batch.tokens[:, :3])[:, 1:] == np.sort(batch.tokens[:, :3])[:, :-1]) < 0.01  # chance .001
    assert_array_equal(drawn(KINDS[3]).weight, np.tile(np.arange(32) < 31, (32, 1)))


def test_tokens_of_the_vocabulary_are_as_likely() -> None:
    words = drawn(PeriodicSequences(), 0, "test", 2000).tokens[:, :12]
    counts = np.bincount(words.ravel(), minlength=32)
    assert np.sum((counts - 750) ** 2 / 750) < 65  # of χ² with 31 degrees of freedom, beyond which lie 4e-4


@pytest.mark.parametrize("form", ["pair", "equation"])
def test_sums_are_split_into_two_sets_that_are_all(form: str) -> None:
    data = ModularAddition(7, 0.4, form)
    pairs = fixed(data)
    batch, rest = (Batch(*map(np.asarray, part)) for part in _split(data, pairs))
    assert (len(batch.tokens), len(rest.tokens)) == (20, 29)  # 49 × 0.4 = 19.6
    every = np.concatenate([batch.tokens, rest.tokens])
    assert len({tuple(pair) for pair in every[:, :2].tolist()}) == 49
    assert_array_equal(np.concatenate([batch.target, rest.target])[:, -1], every[:, :2].sum(axis=1) % 7)
    assert_array_equal(batch.weight[:, -1], 1)
    assert_array_equal(batch.weight[:, :-1], 0)
    if form == "equation":
        assert_array_equal(every[:, 2], 7)
    assert np.any(pairs != fixed(data, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RegressionContexts(tasks=0), "tasks must be at least 1; got an empty pool"),
        (lambda: RegressionContexts(tasks=-1), "tasks must be a whole number >= 1; got -1"),
        (lambda: RegressionContexts(dimension=0), "dimension must be a whole number >= 1; got 0"),
        (lambda: RegressionContexts(noise=-0.1), "noise must be finite and >= 0; got -0.1"),
        (lambda: RegressionContexts(form="garg"), "form must be one of pair, paper, interleaved; got 'garg'"),
        (lambda: RegressionContexts(3, functions=SparseLinear(4)), "nonzero must be at most the dimension, 3; got 4"),
        (
            lambda: RegressionContexts(functions=TwoLayer),
            r"functions must be Linear\(\), SparseLinear\(\) or TwoLayer",
        ),
        (lambda: RegressionContexts(functions=None), "functions must be Linear"),
        (
            lambda: RegressionContexts().test((), key_of(0), 10**12),
            "contexts, context_length and dimension must fit into",
        ),
        (lambda: RegressionContexts(tasks=10**12).fixed(key_of(0)), "tasks must fit into .* GB of memory"),
        (
            lambda: PeriodicSequences().test((), key_of(0), 10**12),
            "sequences and length must fit into .* GB of memory",
        ),
        (lambda: FixedRegression(PeriodicSequences(), 100), "contexts must be a RegressionContexts"),
        (lambda: ModularAddition(46341), "modulus must be at most 46340"),
        (lambda: SparseLinear(0), "nonzero must be a whole number >= 1; got 0"),
        (lambda: TwoLayer(0), "hidden must be a whole number >= 1; got 0"),
        (lambda: FixedRegression(RegressionContexts(), 100), "sequences must be at least those of a batch, 128"),
        (lambda: PeriodicSequences(longest=31), "longest must be at most length - 2, 30"),
        (lambda: PeriodicSequences(shortest=17), "shortest must be at most longest, 16; got 17"),
        (lambda: PeriodicSequences(vocabulary=1), "vocabulary must be a whole number >= 2; got 1"),
        (lambda: PeriodicSequences(vocabulary=10**10), r"vocabulary must be at most 2\*\*24.*; got 10000000000"),
        (lambda: ModularAddition(fraction=1.0), r"fraction must be in \(0, 1\)"),
        (lambda: ModularAddition(fraction=0.0), "fraction must be finite and > 0; got 0.0"),
        (
            lambda: ModularAddition(3, 0.01),
            r"fraction must be in \(0, 1\) and leave pairs on both sides; got 0.01 of 9",
        ),
        (lambda: ModularAddition(form="sum"), "form must be one of pair, equation; got 'sum'"),
    ],
)
def test_impossible_data_are_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
