"""Does the least loss of linear attention fall with the context length as theory says?

A study of one's own, whole: theory is the least population loss; simulation tests the optimal layer on contexts.
"""

from dataclasses import dataclass, replace

import numpy as np

from iclab import MergedAttention, Regression, figures
from iclab.claims import Agrees
from iclab.numerics import Checked, Count, Counts
from iclab.outcomes import Labeled, labeled
from iclab.study import Figure, Key, Preset, Study, View
from iclab.testing import check_study
from iclab.theory.population import best_gamma, best_loss, moments


@dataclass(frozen=True)
class Case(Checked):
    problem: Regression = Regression(eigenvalues=(0.5, 0.3, 0.2), noise=0.1)
    lengths: Counts = (4, 8, 16, 32)  # N, labeled examples before the query
    contexts: Count = 16_000  # contexts on which a seed tests each layer


def theory(case: Case) -> dict[str, Labeled]:
    least = [best_loss(moments(replace(case.problem, context_length=length))) for length in case.lengths]
    return {"least": labeled({"context_length": case.lengths}, loss=least)}


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    from iclab.simulation.linear import contexts, predictions

    losses = []
    for length in case.lengths:
        problem = replace(case.problem, context_length=length)
        layer = MergedAttention(np.ones(1), best_gamma(moments(problem))[None])
        drawn = contexts.draw(problem, case.contexts, key=key)
        losses.append(np.mean((predictions.predict(drawn, layer) - drawn.target) ** 2))
    return {"least": labeled({"context_length": case.lengths}, loss=losses)}


def figure(view: View, figure: Figure) -> None:
    axes, exact = figure.subplots(), view.theory.least
    figures.theory_line(axes, exact.context_length, exact.loss, label="theory")
    if view.simulation:
        figures.mean_points(axes, exact.context_length, view.simulation.least.loss, label="drawn contexts")
    axes.set(xlabel="context length $N$", ylabel="mean squared error", xscale="log")
    axes.legend()


CLAIM = Agrees("least/loss", "The optimal layer has the least loss.", 0.03)
PRESETS = {"quick": Preset(Case(), seeds=12), "full": Preset(Case(contexts=200_000), seeds=12)}
STUDY = Study("least-loss", __doc__, 1, PRESETS, theory, simulation, figure, (CLAIM,))

if __name__ == "__main__":
    check_study(STUDY)
    (verdict,) = STUDY.verdicts(STUDY.run())
    print(verdict.answer)
