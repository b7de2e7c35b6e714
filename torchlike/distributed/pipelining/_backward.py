"""A stage's backward as a whole, or in two parts: the gradients of its inputs, which the stage before waits for, and those of its weights, later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torchlike
from torchlike._core.graph import Node
from torchlike._tensor import Tensor
from torchlike.autograd.graph import GradientEdge, get_gradient_edge

from ._metadata import described


def _failed(what: str, outputs: Any, grads: Any, inputs: Any) -> RuntimeError:
    return RuntimeError(f"""
        Failed to run {what}:
        Stage output: {described(outputs)}
        Output gradient: {described(grads)}
        Input: {described(inputs)}
        """)


def _pairs(output: Any, grad: Any) -> Iterable[tuple[Tensor, Tensor | None]]:
    """The tensors of nested outputs that require a gradient, each with its own."""
    if isinstance(output, Tensor):
        if output.requires_grad:
            if not isinstance(grad, (Tensor, type(None))):
                raise AssertionError(f"Expected Tensor or None gradient but got {type(grad)}")
            yield output, grad
    elif isinstance(output, (tuple, list)) and grad is not None:
        if not isinstance(grad, (tuple, list)):
            raise AssertionError(f"grad_value expected to have type {type(output)} but got {type(grad)}")
        if len(output) != len(grad):
            raise AssertionError(f"Expected len(output_val) == len(grad_val), got {len(output)} != {len(grad)}")
        for o, g in zip(output, grad):
            yield from _pairs(o, g)
    elif isinstance(output, dict) and grad is not None:
        if not isinstance(grad, dict):
            raise AssertionError(f"Expected dict, got {type(grad)}")
        if set(output) != set(grad):
            raise AssertionError(f"Expected keys {set(output)}, got {set(grad)}")
        for k in output:
            yield from _pairs(output[k], grad[k])


def stage_backward(stage_output: Any, output_grads: Any, input_values: Sequence[Any]) -> tuple[Tensor | None, ...]:
    """Adds to the weights' `.grad` and returns the inputs' gradients. RuntimeError, with the shapes, where that fails."""
    try:
        pairs = list(_pairs(stage_output, output_grads))
        torchlike.autograd.backward([o for o, _ in pairs], grad_tensors=[g for _, g in pairs])
        grads = []
        for value in input_values:
            grads.append(value.grad if isinstance(value, Tensor) else None)
            if isinstance(value, Tensor):
                value.grad = None
    except Exception as error:
        raise _failed("stage backward", stage_output, output_grads, input_values) from error
    return tuple(grads)


class _Graph:
    """The nodes below some outputs: which of them lead to an input, and where the ways to the weights leave those."""

    def __init__(self, roots: Iterable[Node], inputs: set[Node], weights: set[Node]) -> None:
        self.below: dict[Node, tuple[Node, ...]] = {}
        order: list[Node] = []  # every node after those below it
        stack = [(node, False) for node in roots]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif node not in self.below:
                self.below[node] = tuple(dict.fromkeys(n for n, _ in node.next_functions if n is not None))
                stack.append((node, True))
                stack += [(n, False) for n in self.below[node]]
        self.to_inputs: set[Node] = set()
        aside: dict[Node, frozenset[Node]] = {}  # the weights that a node which leads to no input leads to
        self.leaving: dict[Node, set[Node]] = {}  # of those that do: the weights beside the way
        for node in order:
            if node in inputs or any(n in self.to_inputs for n in self.below[node]):
                self.to_inputs.add(node)
                self.leaving[node] = set().union(*(aside[n] for n in self.below[node] if n in aside))
            else:
                aside[node] = frozenset({node} & weights).union(*(aside[n] for n in self.below[node]))

    def groups(self) -> list[dict[str, Any]]:
        """The nodes on the way whose weights overlap, together with these weights."""
        found: list[dict[str, Any]] = []
        for node, weights in self.leaving.items():
            if not weights:
                continue
            same = [g for g in found if not weights.isdisjoint(g["params"])]
            found = [g for g in found if g not in same]
            found.append({"params": weights.union(*(g["params"] for g in same)), "intermediates": [i for g in same for i in g["intermediates"]] + [node]})
        return found


def _node(tensor: Any) -> Node | None:
    return get_gradient_edge(tensor).node if isinstance(tensor, Tensor) and tensor.requires_grad else None


def stage_backward_input(outputs: Sequence[Tensor], output_grads: Sequence[Tensor | None] | None, input_values: Sequence[Any],
                         weights: Iterable[Tensor]) -> tuple[tuple[Tensor | None, ...], list[dict[str, Any]]]:
    """The inputs' gradients, and what `stage_backward_weight` needs: the nodes at which the ways to the weights begin, and the gradients that came there.

    The outputs are detached: nothing else of the graph is needed.
    """
    places = [i for i, t in enumerate(outputs) if t.requires_grad]
    valid = [outputs[i] for i in places]
    grads = [torchlike.ones_like(outputs[i]) if output_grads is None else output_grads[i] for i in places]
    graph = _Graph([_node(t) for t in valid], {n for n in map(_node, input_values) if n is not None}, {n for n in map(_node, weights) if n is not None})
    groups, handles = graph.groups(), []

    def keeps(group: dict[str, Any], i: int) -> Callable:
        def hook(arriving: tuple) -> None:
            group["grads"][i] = arriving
        return hook

    try:
        for group in groups:
            group["grads"] = [()] * len(group["intermediates"])
            handles += [node.register_prehook(keeps(group, i)) for i, node in enumerate(group["intermediates"])]
        wanted = [t for t in input_values if isinstance(t, Tensor) and t.requires_grad]
        found: Iterable[Tensor | None] = ()
        if valid and wanted:
            found = torchlike.autograd.grad(valid, wanted, grads, retain_graph=True, allow_unused=True)
        by_input = iter(found)
        dinputs = tuple(next(by_input, None) if isinstance(t, Tensor) and t.requires_grad else None for t in input_values)
        for t, g in zip(input_values, dinputs):
            if g is not None:
                t.grad = g if t.grad is None else t.grad + g
        for t in outputs:
            t.detach_()
    except Exception as error:
        raise _failed("stage backward input", outputs, output_grads, input_values) from error
    finally:
        for handle in handles:
            handle.remove()
    return dinputs, groups


def stage_backward_weight(weights: Iterable[Tensor], param_groups: list[dict[str, Any]]) -> None:
    """Adds to the weights' `.grad`, from where `stage_backward_input` left off."""
    by_node = {_node(w): w for w in weights if w.requires_grad}
    for group in param_groups:
        nodes, arrived = group["intermediates"], group["grads"]
        edges = [(GradientEdge(node, i), g) for node, grads in zip(nodes, arrived) for i, g in enumerate(grads) if g is not None]
        if not edges:
            continue
        # one of the nodes may lie below another one, whose gradient it has already
        handles = [node.register_prehook(lambda _, g=g: g) for node, g in zip(nodes, arrived) if g] if len(nodes) > 1 else []
        try:
            # other groups may need nodes on the way; all are freed when the last group is forgotten
            torchlike.autograd.backward([e for e, _ in edges], [g for _, g in edges], retain_graph=True, inputs=[by_node[n] for n in group["params"]])
        finally:
            for handle in handles:
                handle.remove()
    param_groups.clear()
