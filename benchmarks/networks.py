"""A training step of a two-layer softmax transformer against the same network in PyTorch, eager, on one core.

Width 64, 4 heads, an MLP of 256 GELU neurons, causal, norms with gains, 64 sequences of 64 tokens, Adam, float32;
attention of PyTorch by scaled_dot_product_attention. Promise: at most 1.35 times PyTorch, the least of three runs in
turn. Compilation is said beside it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
import torch
from measure import seconds
from torch.nn import functional

from iclab.simulation import networks
from iclab.simulation.keys import key_of
from iclab.simulation.sequences.batches import Batch

CONTEXTS, LENGTH, VOCABULARY, WIDTH, HEADS, HIDDEN, LAYERS = 64, 64, 64, 64, 4, 256, 2
STEPS, RUNS = 20, 3
NETWORK = networks.Transformer(
    length=LENGTH, outputs=VOCABULARY, vocabulary=VOCABULARY, layers=LAYERS, width=WIDTH, heads=HEADS, mlp=HIDDEN,
    gain=True,
)  # fmt: skip
ADAM = optax.adam(1e-3)


@dataclass(frozen=True)
class Drawn:
    """The same sequences at every step, so that only the network is timed."""

    loss: ClassVar[str] = "cross-entropy"

    def fixed(self, key: Any) -> jax.Array:
        return jax.random.randint(key, (CONTEXTS, LENGTH + 1), 0, VOCABULARY)

    def batch(self, fixed: jax.Array, key: Any) -> Batch:
        return Batch(fixed[:, :-1], fixed[:, 1:], jnp.ones((CONTEXTS, LENGTH)))


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, HIDDEN), (HIDDEN, WIDTH)]
        self.query, self.key, self.value, self.output, self.mlp_in, self.mlp_out = (
            torch.nn.Linear(*shape, bias=False) for shape in shapes
        )
        self.norm, self.mlp_norm = (torch.nn.LayerNorm(WIDTH, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fed = self.norm(x)
        query, key, value = (
            part(fed).view(CONTEXTS, LENGTH, HEADS, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        heard = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(heard.transpose(1, 2).reshape(CONTEXTS, LENGTH, WIDTH))
        return x + self.mlp_out(functional.gelu(self.mlp_in(self.mlp_norm(x)), approximate="tanh"))


class InTorch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.positions = (torch.nn.Embedding(rows, WIDTH) for rows in (VOCABULARY, LENGTH))
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.unembed = (
            torch.nn.LayerNorm(WIDTH, bias=False),
            torch.nn.Linear(WIDTH, VOCABULARY, bias=False),
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.norm(x))


def ours(steps: int) -> None:
    networks.train(NETWORK, Drawn(), steps=steps, optimizer=ADAM, key=key_of(0))


def theirs(model: InTorch, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> None:
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(tokens[:, :-1]).reshape(-1, VOCABULARY)
        functional.cross_entropy(logits, tokens[:, 1:].reshape(-1)).backward()
        optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = InTorch()
    asked = model, torch.optim.Adam(model.parameters(), 1e-3), torch.randint(0, VOCABULARY, (CONTEXTS, LENGTH + 1))
    first = seconds(lambda: ours(1))
    theirs(*asked)
    spent = [(seconds(lambda: ours(STEPS)).cpu, seconds(lambda: theirs(*asked)).cpu) for _ in range(RUNS)]
    jax_step, torch_step = (1e3 * min(runs) / STEPS for runs in zip(*spent, strict=True))
    print(f"a step: {jax_step:.1f} ms, PyTorch {torch_step:.1f} ms, ratio {jax_step / torch_step:.2f} (at most 1.35)")
    print(f"the first step, compilation included: {first.cpu:.1f} s CPU ({first.wall:.1f} s)")
