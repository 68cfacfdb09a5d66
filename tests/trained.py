"""Runs of linear attention as a trainer makes them: PyTorch, float32, full batches, in any convention."""

import numpy as np

from iclab.attention import Layer, random_merged, random_separate
from iclab.problem import Regression

PROBLEM = Regression(eigenvalues=(1.0, 0.5), context_length=7)
RATE = 0.06  # η, on half the mean squared error with attention divided by N


def started(kind: str, seed: int, *, scale: float = 0.1, problem: Regression = PROBLEM) -> Layer:
    """Random start with all weights that reach the prediction, in units of attention divided by N."""
    rng = np.random.default_rng(seed)
    draw = random_merged if kind == "merged" else random_separate
    return draw(problem.dimension, 2, scale=scale, rng=rng).unrestricted()


def in_units(start: Layer, ratio: float) -> Layer:
    """The same layer where sums over tokens are `ratio` times as large."""
    parts = vars(start).values()
    return type(start)(*(part * ratio ** (-1 / len(parts)) for part in parts))


def learning_rate(start: Layer, loss: str, ratio: float, sequences: int) -> float:
    """The rate that makes one step of this code RATE in our time."""
    return RATE / (2 * {"mean": 1, "half": 0.5, "sum": sequences}[loss] * ratio ** (2 / len(vars(start))))


def trained(
    start: Layer, *, sequences: int, steps: int, loss: str = "mean", divisor: float = 7.0, seed: int = 0,
    every: int = 5, rate: float, problem: Regression = PROBLEM,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Steps and logged losses of a run on drawn sequences."""
    import torch

    torch.set_num_threads(1)
    drawn, d, n = torch.Generator().manual_seed(seed), problem.dimension, problem.context_length
    scale = torch.tensor(problem.eigenvalues).sqrt()
    task = torch.randn(sequences, d, generator=drawn)
    x = torch.randn(sequences, n + 1, d, generator=drawn) * scale
    y = torch.einsum("pnd,pd->pn", x, task)
    y = y + problem.noise**0.5 * torch.randn(y.shape, generator=drawn)
    tokens, target, query = torch.cat([x, y[..., None]], -1), y[:, -1].clone(), x[:, -1]
    tokens[:, -1, -1] = 0
    second = torch.einsum("pna,pnb->pab", tokens, tokens) / divisor
    parts = {name: torch.tensor(part, dtype=torch.float32, requires_grad=True) for name, part in vars(start).items()}
    optimizer = torch.optim.SGD(parts.values(), lr=rate)
    clock, logged = [], []
    for step in range(steps + 1):
        keys = parts.get("key_query")
        if keys is None:
            keys = torch.einsum("hra,hrd->had", parts["key"], parts["query"])
        answer = torch.einsum("pab,ha,hbd,pd->p", second, parts["value"], keys, query)
        total = torch.sum((answer - target) ** 2)
        objective = total / {"mean": sequences, "half": 2 * sequences, "sum": 1}[loss]
        if step % every == 0:
            clock.append(step)
            logged.append(objective.item())
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    return np.array(clock), np.array(logged)
