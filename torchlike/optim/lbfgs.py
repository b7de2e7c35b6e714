"""L-BFGS: a quasi-Newton method with a short memory (Nocedal 1980)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.registry import Op
from .._functions import torch
from .._tensor import Tensor, apply
from ..autograd.grad_mode import enable_grad, no_grad
from ._line_search import Point, cubic_minimum, strong_wolfe
from .optimizer import Optimizer, ParamsT, check_learning_rate


def _two_loops(xp, grad, scale, *history):
    """The two-loop recursion. As a loop over stacked arrays its compilation does not grow with the memory."""
    n = len(history) // 3
    if xp is np:
        changes, moves, weights = history[:n], history[n : 2 * n], history[2 * n :]
        q, factors = -grad, [0.0] * n
        for i in reversed(range(n)):
            factors[i] = np.dot(moves[i], q) * weights[i]
            q = q - changes[i] * factors[i]
        q = q * scale
        for i in range(n):
            q = q + moves[i] * (factors[i] - np.dot(changes[i], q) * weights[i])
        return q
    rows = tuple(jnp.stack(history[k : k + n]) for k in (0, n, 2 * n))

    def down(q, row):
        change, move, weight = row
        factor = jnp.dot(move, q) * weight
        return q - change * factor, factor

    def up(q, row):
        change, move, weight, factor = row
        return q + move * (factor - jnp.dot(change, q) * weight), None

    q, factors = jax.lax.scan(down, -grad, rows, reverse=True)
    return jax.lax.scan(up, (q * scale).astype(grad.dtype), (*rows, factors))[0]


_DIRECTION = Op("lbfgs_direction", _two_loops, shape=lambda grad, *rest: (grad.shape, grad.dtype), vjp=False)


class LBFGS(Optimizer):
    """Minimises the closure's loss by steps along approximate Newton directions. One group of parameters.

    `line_search_fn`: None (steps of `lr`) or 'strong_wolfe'. RuntimeError for any other, ValueError for several groups.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_learning_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        parts = []
        for p in self._params:
            g = p.new_zeros(p.numel()) if p.grad is None else p.grad
            parts.append((torch.view_as_real(g) if g.is_complex() else g).reshape(-1))
        return torch.cat(parts, 0)

    def _move(self, t: float, d: Tensor) -> None:
        """Parameters plus t times the direction."""
        offset = 0
        for p in self._params:
            part = torch.view_as_real(p) if p.is_complex() else p
            n = part.numel()
            part.add_(d[offset : offset + n].view_as(part), alpha=t)
            offset += n

    @no_grad()
    def step(self, closure: Callable) -> Any:
        """Up to `max_iter` iterations; the loss before them."""
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        lr = float(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, evals = float(first_loss), 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        done = bool(grad.abs().max() <= group["tolerance_grad"])
        if done:
            return first_loss
        memory = _Memory(state, group["history_size"])
        d, t, before, loss_before = state.get("d"), state.get("t"), state.get("prev_flat_grad"), state.get("prev_loss")
        for i in range(group["max_iter"]):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = grad.neg()
                t = min(1.0, float(1.0 / grad.abs().sum())) * lr
            else:
                memory.add(grad - before, d * t)
                d = memory.direction(grad)
                t = lr
            before, loss_before = grad, loss
            slope = float(grad.dot(d))
            if slope > -group["tolerance_change"]:
                break
            looked = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                point, looked = self._search(closure, d, Point(0.0, loss, grad, slope), t)
                loss, grad, t = point.loss, point.grad, point.t
                self._move(t, d)
                done = bool(grad.abs().max() <= group["tolerance_grad"])
            else:
                self._move(t, d)
                if i + 1 < group["max_iter"]:
                    loss = float(closure())
                    grad = self._flat_grad()
                    done = bool(grad.abs().max() <= group["tolerance_grad"])
                    looked = 1
            evals += looked
            state["func_evals"] += looked
            if (
                evals >= group["max_eval"]
                or done
                or float((d * t).abs().max()) <= group["tolerance_change"]
                or abs(loss - loss_before) < group["tolerance_change"]
            ):
                break
        state.update(
            d=d,
            t=t,
            old_dirs=memory.changes,
            old_stps=memory.moves,
            ro=memory.weights,
            H_diag=memory.scale,
            prev_flat_grad=before,
            prev_loss=loss_before,
        )
        return first_loss

    def _search(self, closure: Callable, d: Tensor, start: Point, t: float) -> tuple[Point, int]:
        """The line search, which leaves the parameters where they were."""
        starts = [p.clone() for p in self._params]

        def evaluate(t: float) -> Point:
            self._move(t, d)
            loss = float(closure())
            grad = self._flat_grad()
            for p, before in zip(self._params, starts):
                p.copy_(before)
            return Point(t, loss, grad, float(grad.dot(d)))

        return strong_wolfe(evaluate, start, t, float(d.abs().max()))


class _Memory:
    """The last moves and the changes of the gradient along them: an approximate inverse Hessian."""

    def __init__(self, state: dict[str, Any], most: int) -> None:
        self.most = most
        self.changes, self.moves, self.weights = (state.get(k, []) for k in ("old_dirs", "old_stps", "ro"))
        self.scale = state.get("H_diag", 1)

    def add(self, change: Tensor, move: Tensor) -> None:
        """Remember a move, if the curvature along it is positive."""
        curvature = change.dot(move)
        if not float(curvature) > 1e-10:
            return
        if len(self.changes) == self.most:
            for old in (self.changes, self.moves, self.weights):
                old.pop(0)
        self.changes.append(change)
        self.moves.append(move)
        self.weights.append(1.0 / curvature)
        self.scale = curvature / change.dot(change)

    def direction(self, grad: Tensor) -> Tensor:
        """-(inverse Hessian) @ grad."""
        if not self.changes:
            return grad.neg() * self.scale
        return apply(_DIRECTION, (grad, self.scale, *self.changes, *self.moves, *self.weights))


# -- the line search as libraries (torchmin) call it -------------------------------------------------------------------


def _strong_wolfe(obj_func: Callable, x: Any, t: float, d: Tensor, f: float, g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
                  tolerance_change: float = 1e-9, max_ls: int = 25) -> tuple:
    """(loss, gradient, step, evaluations) of the best point from x along d; `obj_func(x, t, d)` is (loss, gradient) at step t."""
    def evaluate(t: float) -> Point:
        loss, grad = obj_func(x, t, d)
        return Point(t, float(loss), grad, float(grad.dot(d)))
    found, looked = strong_wolfe(evaluate, Point(0, float(f), g, float(gtd)), t, float(d.abs().max()), c1, c2, tolerance_change, max_ls)
    return found.loss, found.grad, found.t, looked


def _cubic_interpolate(x1: float, f1: Any, g1: Any, x2: float, f2: Any, g2: Any, bounds: tuple | None = None) -> float:
    """The minimum of the cubic through two points with these losses and slopes, within bounds."""
    return cubic_minimum(Point(x1, float(f1), None, float(g1)), Point(x2, float(f2), None, float(g2)), *(bounds or ()))
