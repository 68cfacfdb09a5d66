"""Optimizers by their settings: equal settings give one object, so that a loop compiled with it is found again."""

from functools import lru_cache

import optax

__all__ = ["BETAS", "WARM_UP", "adam", "adamw", "warmed_adam"]

BETAS = (0.9, 0.98)  # of AdamW
WARM_UP = 100  # steps of rising learning rate


@lru_cache(maxsize=32)
def adamw(rate: float, *, decay: float) -> optax.GradientTransformation:
    """AdamW at a constant learning rate, with weight decay on everything."""
    return optax.adamw(rate, b1=BETAS[0], b2=BETAS[1], weight_decay=decay)


@lru_cache(maxsize=32)
def adam(rate: float) -> optax.GradientTransformation:
    """Adam at a constant learning rate."""
    return optax.adam(rate)


@lru_cache(maxsize=32)
def warmed_adam(rate: float, *, steps: int) -> optax.GradientTransformation:
    """Adam with a warm-up of a hundred steps; the learning rate then falls as a cosine, to zero at the last step."""
    return optax.adam(optax.warmup_cosine_decay_schedule(0.0, rate, WARM_UP, steps))
