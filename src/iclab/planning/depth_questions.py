"""The questions of `iclab plan` about depth, each with its answer."""

from dataclasses import asdict, dataclass

from iclab.planning.flags import Answer, Question

__all__ = ["DepthOrContext", "HowDeep"]


@dataclass(frozen=True, kw_only=True)
class HowDeep(Question):
    """How many layers of linear attention reach this loss, with which steps, and on which tests?"""

    excess: float  # mean squared error to reach over the noise of the label, in units of the signal variance
    alpha: float | None = None  # α = N/D, in the limit of large inputs
    dimension: int | None = None  # D, with context_length in place of alpha: exact
    context_length: int | None = None  # N, labeled examples before the query

    def answer(self) -> Answer:
        """The least depth, its layers, and the tests on which it beats one layer less."""
        from iclab.planning import depths, figures

        size = {"alpha": self.alpha, "dimension": self.dimension, "context_length": self.context_length}
        law = depths.depth_law(**size)
        found = depths.least_depth(law, self.excess, noise=self.noise)
        layers = ", ".join(f"{one:.4g}" for one in found.layers)
        rows = (
            ("layers L", f"{found.depth}"),
            ("steps g, in units of 1/λ", layers),
            ("excess", f"{found.excess:.4g}"),
            ("with one layer less", f"{found.one_less:.4g}"),
            ("with as many equal layers", f"{found.tied:.4g}"),
            ("ridge, the only proved floor", f"{found.ridge:.4g}"),
            ("better than one less from N'/N", _span(*found.lengths)),
            ("better than one less from λ'/λ", _span(*found.scales)),
        )
        searched = ("With noise the best layers are the lowest of those that a search finds.",) if self.noise else ()
        return Answer(
            ("quantity", "value"),
            rows,
            ("Layers are exchanged freely; for inputs of covariance Λ they are g Λ⁻¹.", *searched),
            asdict(found),
            lambda figure: figures.depth_figure(figure, law, found, noise=self.noise),
        )


@dataclass(frozen=True, kw_only=True)
class DepthOrContext(Question):
    """How is a budget of layers times examples best split into depth and context length?"""

    budget: int  # L·N, layers times labeled examples of a context
    dimension: int  # D, entries of an input

    def answer(self) -> Answer:
        """The best depth and context length, beside the neighbors."""
        from iclab.planning import depths, figures

        best, tried, heights = depths.depth_or_context(self.budget, dimension=self.dimension, noise=self.noise)
        near = best.depth // 2, best.depth - 1, best.depth, best.depth + 1, 2 * best.depth
        shown = sorted({one for one in near if 1 <= one <= len(tried)} | {1})
        rows = tuple((f"{one}", f"{self.budget // one}", f"{heights[one - 1]:.4g}") for one in shown)
        return Answer(
            ("layers L", "examples N", "excess over signal variance"),
            rows,
            (f"The best split has {best.depth} layers on contexts of {best.context_length} examples.",),
            asdict(best),
            lambda figure: figures.depth_split_figure(figure, self, tried, heights),
        )


def _span(low: float, high: float) -> str:
    """An interval of factors in words; open ends are those that were tried."""
    start = "the shortest tried" if low == 0 else f"{low:.3g}"
    return f"{start} to {'the largest tried' if high == float('inf') else f'{high:.3g}'}"
