"""torch.utils.checkpoint with policies: gradients, what the policy sees, what is computed again; beside real torch."""
import functools
import importlib

import pytest


def parts(torch):
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint")
    mode = importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Count(mode):
        """Products and others that run, by name."""

        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))
    return checkpoint, Count


def block(torch, x, w, v):
    y = torch.nn.functional.gelu(torch.mm(x, w))
    y = torch.softmax(torch.mm(y, v).add(1.0), -1)
    return torch.mm(y, w).sin()


def leaves(torch):
    return [torch.arange(12.0).reshape(s).div(10).requires_grad_() for s in ((3, 4), (4, 3), (3, 4))]


POLICIES = ["save mm", "save none", "save all", "first mm", "bools", "offload", "by shape"]


def policy_of(torch, checkpoint, kind, told):
    P, aten = checkpoint.CheckpointPolicy, torch.ops.aten
    seen = []

    def policy(context, op, *args, **kwargs):
        told.append((str(op), context.is_recompute, tuple(context.op_output.shape), [tuple(a.shape) for a in args if hasattr(a, "shape")]))
        seen.append(op)
        if kind == "save all":
            return P.PREFER_SAVE
        if kind == "bools":
            return op is aten.gelu.default
        if kind == "first mm":
            return P.MUST_SAVE if op == aten.mm.default and seen.count(op) == 1 else P.PREFER_RECOMPUTE
        if kind == "by shape":
            return P.MUST_SAVE if op == aten.mm.default and args[1].shape == (3, 4) else P.PREFER_RECOMPUTE
        return P.MUST_CPU_OFFLOAD if kind == "offload" else P.MUST_RECOMPUTE
    return [torch.ops.aten.mm.default] if kind == "save mm" else policy


@pytest.mark.parametrize("kind", POLICIES)
def test_policies(subject, oracle, kind):
    """The gradients are those without a checkpoint, and what the policy keeps does not run again."""
    def facts(torch):
        checkpoint, Count = parts(torch)
        told, given = [], leaves(torch)
        contexts = functools.partial(checkpoint.create_selective_checkpoint_contexts, policy_of(torch, checkpoint, kind, told))
        y = checkpoint.checkpoint(block, torch, *given, use_reentrant=False, context_fn=contexts)
        with Count() as count:
            y.sum().backward()
        plain = leaves(torch)
        block(torch, *plain).sum().backward()
        for a, b in zip(given, plain):
            torch.testing.assert_close(a.grad, b.grad)
        # PyTorch stops the recomputation where nothing more is saved, and runs the backward's products by the same operators
        return [t for t in told if "detach" not in t[0]], [n for n in count.seen if n in ("aten.gelu.default", "aten._softmax.default", "aten.add.Tensor")]
    assert facts(subject) == facts(oracle)


def test_products_run_again_or_not(subject):
    """Of three products, those that the policy does not keep."""
    checkpoint, Count = parts(subject)
    for kind, again in (("save mm", 0), ("save none", 3), ("first mm", 2), ("by shape", 2), ("save all", 0)):
        given = leaves(subject)
        y = checkpoint.checkpoint(block, subject, *given, use_reentrant=False, context_fn=functools.partial(
            checkpoint.create_selective_checkpoint_contexts, policy_of(subject, checkpoint, kind, [])))
        with Count() as count:
            y.sum().backward()
        assert count.seen.count("aten.mm.default") == again + 6, kind  # two are the gradients of each


def test_layers(subject, oracle):
    """Linear layers, attention, norms: the operators that lists name."""
    def facts(torch):
        checkpoint, Count = parts(torch)
        aten, F = torch.ops.aten, torch.nn.functional
        kept = [aten.addmm.default, aten.mm.default, aten._scaled_dot_product_flash_attention_for_cpu.default, aten._scaled_dot_product_efficient_attention.default,
                aten._scaled_dot_product_flash_attention.default, aten.native_layer_norm.default]
        torch.manual_seed(0)
        a, b, norm = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8, bias=False), torch.nn.LayerNorm(8)
        x = torch.randn(2, 5, 8, requires_grad=True)
        seen = []

        def policy(context, op, *args, **kwargs):
            seen.append(str(op))
            return op in kept

        def run(x):
            q, k, v = a(norm(x)).view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
            return F.dropout(b(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 5, 8)), 0.5).relu()
        torch.manual_seed(1)
        run(x).sum().backward()
        grads = [t.grad.clone() for t in (x, a.weight, b.weight, norm.weight)]
        for t in (x, a.weight, b.weight, norm.weight):
            t.grad = None
        torch.manual_seed(1)
        checkpoint.checkpoint(run, x, use_reentrant=False, context_fn=functools.partial(checkpoint.create_selective_checkpoint_contexts, policy)).sum().backward()
        for t, g in zip((x, a.weight, b.weight, norm.weight), grads):
            torch.testing.assert_close(t.grad, g)
        return sorted(n for n in seen if n in {str(op) for op in kept})
    assert facts(subject) == facts(oracle)


def test_errors(subject, oracle):
    """Lists of packets, wrong policies, reentrant checkpoints, second backward, a forward that changes."""
    def facts(torch):
        checkpoint, _ = parts(torch)
        make, out = checkpoint.create_selective_checkpoint_contexts, []

        def attempt(f):
            try:
                f()
            except Exception as error:
                out.append((type(error).__name__, str(error).replace(torch.__name__, "torch")))
            else:
                out.append(None)
        attempt(lambda: make([torch.ops.aten.mm]))
        attempt(lambda: make([3]))
        attempt(lambda: make(3))
        x = torch.ones(2, 2, requires_grad=True)
        saved = functools.partial(make, [torch.ops.aten.mm.default])
        attempt(lambda: checkpoint.checkpoint(torch.sin, x, use_reentrant=True, context_fn=saved))
        y = checkpoint.checkpoint(lambda x: torch.mm(x, x).sin(), x, use_reentrant=False, context_fn=saved).sum()
        attempt(lambda: y.backward(retain_graph=True))
        calls = []

        def changing(x):
            calls.append(1)
            return torch.mm(x, x).sin() if len(calls) == 1 else torch.mm(x.cos(), x).sin()
        z = checkpoint.checkpoint(changing, x, use_reentrant=False, context_fn=saved).sum()
        attempt(z.backward)
        names = [(p.name, p.value) for p in checkpoint.CheckpointPolicy]
        return out, names, [type(t).__name__ for t in checkpoint.detach_variable((x, 3))], [type(c).__name__ for c in checkpoint.noop_context_fn()]
    assert facts(subject) == facts(oracle)
