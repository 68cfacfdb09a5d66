"""CPU seconds of a step of gradient descent: on sufficient statistics, on cubic features, on tokens.

The token route computes the output of the query alone. Published sizes: D = 4, N = 31, H = 8, 5000 sequences.
Promise: statistics take at least 5000 times less than tokens.
"""

import numpy as np
from measure import least_seconds, product_rate, promised

from iclab import Regression
from iclab.attention import Layer, random_merged, random_separate
from iclab.simulation.keys import key_of
from iclab.simulation.linear.contexts import Contexts, draw
from iclab.simulation.linear.descent import on_features, on_statistics, on_tokens
from iclab.simulation.linear.statistics import features_read_by, statistics


def seconds_per_step(route, data, start: Layer, steps: int) -> float:
    """Between a short and a long run, so that neither compilation nor the cost of a call counts."""
    short, long = (
        least_seconds(lambda last=last: route(data, start, rate=1e-3, steps=[0, last])) for last in (1, steps + 1)
    )
    return (long - short) / steps


def row(name: str, contexts: Contexts, start: Layer, *, promise: bool = False) -> str:
    token = seconds_per_step(on_tokens, contexts, start, 30)
    cubic = seconds_per_step(on_features, contexts, start, 1000)
    few = seconds_per_step(on_statistics, statistics(contexts, start), start, 50_000)
    if promise:
        used = 2 * features_read_by(start) ** 2 / few / product_rate()
        share = f"{100 * used:.0f} % of the flop/s of a matrix product"
        promised(f"descent, {name}: tokens/statistics", token / few, 5000, "×", least=True, share=share)
    return (
        f"{name:22s} tokens {token * 1e3:6.2f} ms   features {cubic * 1e6:6.1f} µs   statistics {few * 1e6:5.2f} µs"
        f"   tokens/statistics {token / few:7.0f}"
    )


def side_by_side(name: str, contexts: Contexts, start: Layer, starts: int) -> str:
    many = type(start)(*(np.stack([part] * starts) for part in vars(start).values()))
    each = seconds_per_step(on_statistics, statistics(contexts, start), many, 5000) / starts
    return f"{name:22s} {starts:3d} starts side by side on statistics, each {each * 1e6:5.2f} µs"


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    contexts = draw(Regression(), 5000, key=key_of(0))
    merged, separate = random_merged(4, 8, scale=0.01, rng=rng), random_separate(4, 8, scale=0.1, rng=rng)
    for name, start in (("merged", merged), ("separate", separate)):
        print(row(f"{name}, restricted", contexts, start))
        print(row(f"{name}, unrestricted", contexts, start.unrestricted(), promise=True))
        for starts in (8, 64):
            print(side_by_side(f"{name}, restricted", contexts, start, starts))
            print(side_by_side(f"{name}, unrestricted", contexts, start.unrestricted(), starts))
