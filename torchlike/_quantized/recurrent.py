"""Recurrent layers with quantized weights. A layer's inputs of all steps are quantized together, its state at each step."""
from __future__ import annotations

from collections.abc import Callable

from .._tensor import Tensor
from ..nn._functional.dropout import dropout as dropped
from ..ops.joining import cat, stack
from .linear import PackedLinear


class CellParams:
    """The two products of a cell: with the input, and with the state."""

    def __init__(self, packed_ih: PackedLinear, packed_hh: PackedLinear, reduce_range: bool = True) -> None:
        self.ih, self.hh, self.reduce_range = packed_ih, packed_hh, reduce_range

    def __reduce__(self) -> tuple:
        from .._serialization.tensors import _rebuild_cell_params
        return _rebuild_cell_params, (self.ih, self.hh, self.reduce_range)

    def of_input(self, x: Tensor) -> Tensor:
        return self.ih.dynamic(x, self.reduce_range)

    def of_state(self, h: Tensor) -> Tensor:
        return self.hh.dynamic(h, self.reduce_range)


def lstm_step(params: CellParams, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The next state from the product with the input."""
    i, f, g, o = (params.of_state(state[0]) + x).chunk(4, 1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(params: CellParams, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor]:
    """The next state from the product with the input."""
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, 1), params.of_state(state[0]).chunk(3, 1)
    new = (xn + hn * (hr + xr).sigmoid()).tanh()
    return ((state[0] - new) * (hz + xz).sigmoid() + new,)


STEPS: dict[str, Callable] = {"LSTM": lstm_step, "GRU": gru_step}


def _direction(step: Callable, params: CellParams, x: Tensor, state: tuple, sizes: list[int] | None, backwards: bool) -> tuple[Tensor, tuple]:
    """Outputs and last state of one direction of a layer; with `sizes`, x holds one step's sequences after the other's, so many each."""
    products = params.of_input(x)
    products = list(products.unbind(0) if sizes is None else products.split(sizes))
    outputs: list[Tensor] = []
    ended: list[tuple] = []  # states of the sequences that end before the others, the last ones first
    whole, count = state, state[0].shape[0] if sizes is None or not backwards else sizes[-1]
    state = tuple(s[:count] for s in whole)
    for product in (reversed(products) if backwards else products):
        n = product.shape[0]
        if n < count:
            ended.append(tuple(s[n:] for s in state))
            state = tuple(s[:n] for s in state)
        elif n > count:  # sequences begin, from the end
            state = tuple(cat([s, w[count:n]]) for s, w in zip(state, whole))
        count = n
        state = step(params, product, state)
        outputs.append(state[0])
    if backwards:
        outputs.reverse()
    state = tuple(cat([s, *(e[k] for e in reversed(ended))]) for k, s in enumerate(state)) if ended else state
    return (stack(outputs) if sizes is None else cat(outputs)), state


def layers(mode: str, cells: list[CellParams], x: Tensor, states: tuple[Tensor, ...], bidirectional: bool, dropout: float, training: bool,
           sizes: list[int] | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Outputs (steps, batch, features) of the last layer, and last states (layers * directions, batch, features)."""
    directions = 1 + bidirectional
    last: list[tuple] = []
    for k in range(0, len(cells), directions):
        made = [_direction(STEPS[mode], cells[k + d], x, tuple(s[k + d] for s in states), sizes, d == 1) for d in range(directions)]
        x = made[0][0] if directions == 1 else cat([m[0] for m in made], -1)
        last += [m[1] for m in made]
        if dropout and training and k + directions < len(cells):
            x = dropped(x, dropout, True)
    return x, tuple(stack(list(part)) for part in zip(*last))


