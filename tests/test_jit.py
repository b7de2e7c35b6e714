"""torch.jit beside real torch."""
import io
import typing
import warnings
from importlib import import_module
from typing import Any, Optional, Union

import pytest
import torch as oracle

import torchlike as subject

OBJECTS = ["1", "'a'", "t.ones(1)", "[1]", "[1, 'a']", "[]", "{}", "{'a': 1}", "{'a': t.ones(1)}", "(1,)", "(1, 'a')", "()", "[[1]]", "[[]]", "None", "{'a': [1]}",
           "(1, [t.ones(1)])", "1.5", "True"]
TYPES = ["int", "typing.List[int]", "typing.Dict[str, int]", "typing.Dict[str, t.Tensor]", "typing.Tuple[int]", "typing.Tuple[int, str]", "typing.Tuple[int, ...]",
         "Optional[int]", "Optional[typing.List[int]]", "typing.List[typing.List[int]]", "(list[int], dict[str, int])", "list", "list[int]",
         "Union[int, typing.List[int]]", "int | None", "dict[str, list[int]]", "tuple[int, list[t.Tensor]]", "t.Tensor", "Any", "list[Any]", "typing.Sequence[int]",
         "typing.List", "typing.Dict", "typing.Tuple", "dict", "Optional", "(int, str)", "list[Optional[int]]"]


@pytest.mark.parametrize("kind", TYPES)
def test_isinstance(kind):
    def answers(t):
        names = {"t": t, "typing": typing, "Any": Any, "Optional": Optional, "Union": Union}
        found = []
        for text in OBJECTS:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                try:
                    answer = t.jit.isinstance(eval(text, names), eval(kind, names))
                except Exception as error:
                    answer = type(error), str(error)
            found.append((text, answer, len({str(w.message)[:60] for w in seen if w.category is UserWarning})))
        return found
    assert answers(subject) == answers(oracle)


def test_the_compiler_is_off():
    """As under PYTORCH_JIT=0, which libraries ask for."""
    from torchlike.jit._state import _enabled
    oracle.jit._state.disable()
    try:
        before = oracle.jit._state._enabled
        assert (bool(_enabled), _enabled.enabled, type(_enabled).__name__) == (bool(before), before.enabled, type(before).__name__)
    finally:
        oracle.jit._state.enable()


def test_switches_of_the_compiler():
    """What programs turn off there, and that they are told what was set before."""
    def program(t):
        c, found = import_module(f"{t.__name__}._C"), []
        for name in "profiling_executor", "profiling_mode", "autocast_mode":
            found += [getattr(c, f"_jit_set_{name}")(on) for on in (False, False, True)]
        for turn, ask in ("override_can_fuse_on_cpu", "can_fuse_on_cpu"), ("set_texpr_fuser_enabled", "texpr_fuser_enabled"):
            turn, ask = getattr(c, f"_jit_{turn}"), getattr(c, f"_jit_{ask}")
            first = ask()
            found += [first, turn(not first), ask(), turn(first), ask()]
        found += [c._jit_override_can_fuse_on_gpu(True), c._jit_override_can_fuse_on_gpu(False)]
        first = t.jit.set_fusion_strategy([("STATIC", 1), ("DYNAMIC", 3)])
        found += [first, t.jit.set_fusion_strategy(first)]
        with pytest.raises(ValueError) as error:
            t.jit.set_fusion_strategy([("EVERY", 1)])
        return found, str(error.value)
    assert program(subject) == program(oracle)


def test_strategies():
    def program(t):
        found = []
        for name in ("fuser0", "fuser1", "fuser2", "none", "other"):
            try:
                with t.jit.fuser(name), t.jit.optimized_execution(False):
                    found.append((t.ones(2) * 2).tolist())
            except Exception as error:
                found.append((type(error), str(error)))
        try:
            t.jit.ScriptFunction()
        except TypeError as error:
            found.append(str(error))
        return found, isinstance(program, t.jit.ScriptFunction)
    assert program(subject) == program(oracle)


def test_a_module_with_backward_hooks_is_not_traced():
    def refused(torch):
        model = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(2, 1))
        model[1].register_full_backward_hook(lambda *_: None)
        with pytest.raises(ValueError) as error:
            torch.jit.trace(model, torch.ones(1, 2))
        return str(error.value)
    assert refused(subject) == refused(oracle)


def test_a_traced_function_runs_as_it_is_called():
    """Under the caller's grad mode, so that it may take gradients itself."""
    def modes(t):
        seen = []

        def slope(x):
            seen.append(t.is_grad_enabled())
            return x * 2

        class Layer(t.nn.Module):
            def forward(self, x):
                return slope(x)
        for traced in (slope, Layer()):
            t.jit.trace(traced, (t.ones(2),), check_trace=False)
            with t.no_grad():
                t.jit.trace(traced, (t.ones(2),), check_trace=False)
        return seen
    assert modes(subject) == modes(oracle) == [True, False, True, False]


@pytest.mark.parametrize("args", [("a\nb", "c", "d"), ("a", None), (None, "b"), (None, None, "x"), ("", "")])
def test_tracing_check_error(args):
    def said(t):
        error = t.jit.TracingCheckError(*args)
        return str(error), error.message, type(error).__module__, type(error).__mro__[1]
    assert said(subject) == said(oracle)


def test_is_tracing_on_examples():
    def answers(t):
        seen = []

        class Model(t.nn.Module):
            def forward(self, x):
                seen.append(t.jit.is_tracing())
                return x * 2

        def f(x):
            seen.append(t.jit.is_tracing())
            return x + 1
        t.jit.trace(f, t.ones(2), check_trace=False)
        t.jit.trace(Model(), t.ones(2), check_trace=False)
        t.jit.trace_module(Model(), {"forward": t.ones(2)}, check_trace=False)
        return seen, t.jit.is_tracing()
    assert answers(subject) == answers(oracle) == ([True] * 3, False)


def test_deprecations(tmp_path):
    def warned(t):
        class Layer(t.nn.Module):
            def forward(self, x):
                return x + 1
        found = []
        stream = io.BytesIO()
        calls = [lambda: t.jit.script(Layer()), lambda: t.jit.trace(Layer(), t.ones(1)), lambda: t.jit.trace_module(Layer(), {"forward": t.ones(1)}),
                 lambda: t.jit.save(t.jit.trace(Layer(), t.ones(1)), stream), lambda: t.jit.trace(Layer(), t.ones(1)).save(str(tmp_path / "m.pt")),
                 lambda: (stream.seek(0), t.jit.load(stream))]
        for call in calls:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                call()
            found.append({str(w.message) for w in seen if w.category is DeprecationWarning and "torch.jit" in str(w.message)})
        return found
    assert warned(subject) == warned(oracle)
