"""The window of softmax attention: exact losses, the best scale, and laws in the limit of long contexts."""

from iclab.theory.softmax.laws import (
    gaussian_loss,
    gaussian_squared_weights,
    kinked_kernel,
    linear_attention_loss,
    long_context_loss,
    scale_exponent,
    scale_law,
)
from iclab.theory.softmax.window import (
    KernelLoss,
    affine_loss,
    best_kernel_scale,
    best_scale,
    effective_context,
    kernel_loss,
)

__all__ = [
    "KernelLoss", "affine_loss", "best_kernel_scale", "best_scale", "effective_context", "gaussian_loss",
    "gaussian_squared_weights", "kernel_loss", "kinked_kernel", "linear_attention_loss", "long_context_loss",
    "scale_exponent", "scale_law",
]  # fmt: skip
