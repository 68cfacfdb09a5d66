"""Transformers: their sizes, their start and their forward pass."""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iclab.numerics import checks_its_fields, divides, instance, one_of, require, whole_number
from iclab.simulation.networks.parts import (
    ACTIVATIONS,
    Parameters,
    drawn,
    layer_norm,
    linear_attention_weights,
    looked_up,
    rotated,
    softmax_attention_weights,
)
from iclab.simulation.networks.row_layout import RowLayout

__all__ = ["MOST_LAYERS", "Transformer"]

MOST_LAYERS = 1000


@checks_its_fields
@dataclass(frozen=True)
class Transformer:
    """A transformer of a stated size. Tokens are numbers below `vocabulary`, or real vectors of `features` entries.

    Without an `mlp` it is attention alone. Layer norms stand before attention, MLP and unembedding
    ("pre"), after each residual sum ("post") or nowhere ("none"); a `gain` is learned or not. "shortformer" adds
    positions to the inputs of queries and keys alone, after the norm; "relative" adds a learned number for each head
    and distance to the scores, from zero, and needs `causal`. Linear attention divides its scores by the
    number of tokens that a token sees.

    Raises ValueError for heads that do not divide the width, for rotary embeddings in heads of odd size, for tied
    weights of real tokens, and for impossible sizes.
    """

    length: int  # longest sequence
    outputs: int  # entries of the output at a position
    vocabulary: int = 0  # different tokens; 0: tokens are real vectors
    features: int = 0  # entries of a real token; 0: tokens are numbers
    layers: int = 2
    width: int = 64  # entries of the residual stream
    heads: int = 2
    mlp: int = 0  # hidden neurons of a layer; 0: attention alone
    activation: str = "gelu"  # of hidden neurons: gelu or relu
    attention: str = "softmax"  # or linear
    causal: bool = True  # a token sees itself and earlier ones only
    positions: str = "absolute"  # or shortformer, rotary, relative, none
    norm: str = "pre"  # or post, none
    gain: bool = False  # norms have a learned gain
    tied: bool = False  # the unembedding is the embedding
    last_only: bool = False  # there is an output at the last position alone

    def __post_init__(self) -> None:
        for name in ("length", "outputs", "layers", "width", "heads"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        for name in ("vocabulary", "features", "mlp"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least=0))
        for name in ("causal", "gain", "tied", "last_only"):
            instance(name, getattr(self, name), bool)
        require(
            self.layers <= MOST_LAYERS,
            f"layers must be at most {MOST_LAYERS}, since each is compiled by itself; got {self.layers}.",
        )
        one_of("activation", self.activation, tuple(ACTIVATIONS))
        one_of("attention", self.attention, ("softmax", "linear"))
        one_of("positions", self.positions, ("absolute", "shortformer", "rotary", "relative", "none"))
        one_of("norm", self.norm, ("pre", "post", "none"))
        require(
            (self.vocabulary == 0) != (self.features == 0),
            f"tokens must be numbers or vectors; got vocabulary {self.vocabulary} and features {self.features}. "
            "Leave one of them 0.",
        )
        divides("heads", self.heads, "width", self.width)
        require(
            self.positions != "rotary" or self.head_dim % 2 == 0,
            f"rotary positions need heads of even size; got {self.head_dim}.",
        )
        require(self.positions != "relative" or self.causal, "relative positions need causal; got causal = False.")
        require(
            not self.tied or self.vocabulary == self.outputs,
            f"tied needs a vocabulary as large as the outputs; got {self.vocabulary} and {self.outputs}.",
        )

    @property
    def shortest(self) -> int:
        """Tokens of the shortest sequence."""
        return 1

    @property
    def entries(self) -> int:
        """Numbers in the largest array that a sequence goes through: neurons, scores or outputs."""
        return self.length * max(self.width, self.mlp, self.heads * self.length, self.outputs)

    @property
    def head_dim(self) -> int:
        """Entries of a query."""
        return self.width // self.heads

    def start(self, key: jax.Array) -> Parameters:
        """Tables of entries N(0, 1/width), matrices of entries N(0, 1/inputs), gains of one, distances zero."""
        found = drawn(tuple(self._shapes().items()), key)
        return {name: 0 * part if name.endswith(".relative.weight") else part for name, part in found.items()}

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        width = self.width
        shapes: dict[str, tuple[int, ...]] = (
            {"embed.weight": (self.vocabulary, width)}
            if self.vocabulary
            else {"read_in.weight": (width, self.features)}
        )
        if self.positions in ("absolute", "shortformer"):
            shapes["positions.weight"] = (self.length, width)
        for layer in range(self.layers):
            name = f"layers.{layer}"
            shapes |= {
                f"{name}.attention.{part}.weight": (width, width) for part in ("query", "key", "value", "output")
            }
            if self.positions == "relative":
                shapes[f"{name}.attention.relative.weight"] = (self.heads, self.length)
            if self.mlp:
                shapes |= {f"{name}.mlp_in.weight": (self.mlp, width), f"{name}.mlp_out.weight": (width, self.mlp)}
            if self.gain and self.norm != "none":
                shapes |= {f"{name}.norm.weight": (width,)} | (
                    {f"{name}.mlp_norm.weight": (width,)} if self.mlp else {}
                )
        if self.gain and self.norm == "pre":
            shapes["final_norm.weight"] = (width,)
        if not self.tied:
            shapes["unembed.weight"] = (self.outputs, width)
        return shapes

    def forward(self, parameters: Parameters, tokens: jax.Array) -> jax.Array:
        """Outputs (context, position, output), at the last position alone with `last_only`."""
        return self._run(parameters, tokens, [])

    def patterns(self, parameters: Parameters, tokens: jax.Array) -> jax.Array:
        """Attention weights of every layer and head, (context, layer, head, position, position).

        Raises ValueError for a network with an output at the last position alone.
        """
        require(not self.last_only, "last_only must be False, so that every layer attends from every position.")
        kept: list[jax.Array] = []
        self._run(parameters, tokens, kept)
        return jnp.stack(kept, axis=1)

    def _run(self, parameters: Parameters, tokens: jax.Array, kept: list[jax.Array]) -> jax.Array:
        """The outputs; attention weights of the layers are appended to `kept`."""
        contexts, length = tokens.shape[:2]
        every = RowLayout(contexts, length)
        rows, layout = self._read(parameters, tokens, every)
        table: Any = parameters.get("positions.weight")
        if self.positions == "absolute":
            rows = layout.added(rows, table)
        for layer in range(self.layers):
            last = self.last_only and layer == self.layers - 1
            here = layout if layer == 0 else every
            rows = self._block(parameters, f"layers.{layer}", rows, table, here, last, kept)
        if self.norm == "pre":
            rows = layer_norm(rows, parameters.get("final_norm.weight"))
        unembedding = parameters["embed.weight" if self.tied else "unembed.weight"]
        return (rows @ unembedding.T).reshape(contexts, -1, self.outputs)

    def _read(self, parameters: Parameters, tokens: jax.Array, every: RowLayout) -> tuple[jax.Array, RowLayout]:
        """Rows before positions and layers: of each position of the batch, or of each token where these are fewer."""
        if not self.vocabulary:
            return tokens.reshape(-1, self.features) @ parameters["read_in.weight"].T, every
        if self.vocabulary >= every.contexts:
            return looked_up(parameters["embed.weight"], tokens.reshape(-1)), every
        return jnp.repeat(parameters["embed.weight"], every.length, axis=0), replace(every, tokens=tokens)

    def _block(
        self,
        parameters: Parameters,
        name: str,
        rows: jax.Array,
        table: Any,
        layout: RowLayout,
        last: bool,
        kept: list,
    ) -> jax.Array:
        """The residual stream after a layer, (context · position, width)."""
        gains = [parameters.get(f"{name}.{norm}.weight") for norm in ("norm", "mlp_norm")]
        before = self._before(rows, gains[0])
        attended = self._attended(parameters, f"{name}.attention", before, table, layout, last, kept)
        through, through_layout = layout.last(rows) if last else (rows, layout)
        state = self._after(through_layout.by_position(through).reshape(attended.shape) + attended, gains[0])
        if not self.mlp:
            return state
        hidden = ACTIVATIONS[self.activation](self._before(state, gains[1]) @ parameters[f"{name}.mlp_in.weight"].T)
        return self._after(state + hidden @ parameters[f"{name}.mlp_out.weight"].T, gains[1])

    def _before(self, state: jax.Array, gain: Any) -> jax.Array:
        return layer_norm(state, gain) if self.norm == "pre" else state

    def _after(self, state: jax.Array, gain: Any) -> jax.Array:
        return layer_norm(state, gain) if self.norm == "post" else state

    def _attended(
        self,
        parameters: Parameters,
        name: str,
        rows: jax.Array,
        table: Any,
        layout: RowLayout,
        last: bool,
        kept: list,
    ) -> jax.Array:
        """The output of attention, which the residual stream adds, (context · position, width)."""
        with_positions = layout.added(rows, table) if self.positions == "shortformer" else rows
        queries, query_layout = layout.last(with_positions) if last else (with_positions, layout)

        def heads(rows: jax.Array, layout: RowLayout, part: str) -> jax.Array:
            projected = layout.by_position(rows @ parameters[f"{name}.{part}.weight"].T)
            return projected.reshape(*projected.shape[:2], self.heads, self.head_dim).swapaxes(1, 2)

        query = heads(queries, query_layout, "query")
        key, value = heads(with_positions, layout, "key"), heads(rows, layout, "value")
        length = key.shape[2]
        if self.positions == "rotary":
            query, key = rotated(query, length), rotated(key, length)
        scores = query @ key.swapaxes(2, 3) / math.sqrt(self.head_dim)
        query_at = np.arange(length, dtype=np.int32)[-query.shape[2] :, None]
        if self.positions == "relative":
            distance = np.maximum(query_at - np.arange(length, dtype=np.int32), 0)
            scores = scores + jnp.asarray(parameters[f"{name}.relative.weight"])[:, distance]
        seen = jnp.arange(length, dtype=jnp.int32) <= query_at if self.causal else None
        attention = (
            softmax_attention_weights(scores, seen)
            if self.attention == "softmax"
            else linear_attention_weights(scores, seen)
        )
        kept.append(attention)
        attended = (attention @ value).swapaxes(1, 2).reshape(-1, self.width)
        return attended @ parameters[f"{name}.output.weight"].T
