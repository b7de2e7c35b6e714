"""torch.utils.benchmark: times of small programs. What a statement ends with is computed each time, though nobody reads it."""
from __future__ import annotations

import ast
import enum
import textwrap
import time
from collections.abc import Callable
from typing import Any

from ..._core import program
from ..._tensor import Tensor
from .compare import Colorize, Compare
from .fuzzer import FuzzedParameter, FuzzedSparseTensor, FuzzedTensor, Fuzzer, ParameterAlias
from .measurement import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare", "FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "Language", "Measurement", "ParameterAlias", "TaskSpec", "Timer",
           "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig", "unit_to_english"]


timer = time.perf_counter  # what Timer reads


def _computed(value: Any) -> None:
    """Run what a result waits for."""
    for t in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(t, Tensor):
            t._current()
            program.flush("torch.utils.benchmark")
            array = t._value.array
            if hasattr(array, "block_until_ready"):
                array.block_until_ready()


def _flush_left(code: str) -> str:
    """Code as it is shown: without the indentation that all lines share, a line break before it and blanks after it."""
    return textwrap.dedent(code).removeprefix("\n").rstrip()


def _loop(stmt: str, setup: str) -> Any:
    """Code of a function `run(n, timer)`: the setup, then the time of n statements."""
    body = ast.parse(textwrap.dedent(stmt).strip()).body
    last = body[-1] if body else None
    done = ast.Name("_computed", ast.Load())
    if isinstance(last, ast.Expr):
        last.value = ast.Call(done, [last.value], [])
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        body.append(ast.Expr(ast.Call(done, [ast.Name(last.targets[0].id, ast.Load())], [])))
    tree = ast.parse("def run(n, timer):\n    start = timer()\n    for _ in range(n):\n        pass\n    return timer() - start")
    function = tree.body[0]
    function.body[1].body = body or function.body[1].body
    function.body[:0] = ast.parse(textwrap.dedent(setup).strip()).body
    return compile(ast.fix_missing_locations(tree), "<timeit>", "exec")


class Language(enum.Enum):
    """What statements are written in; only Python can be timed here."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement."""

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
                 globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None, description: str | None = None,
                 env: str | None = None, num_threads: int = 1, language: Any = "py") -> None:
        if language in (Language.CPP, "cpp", "c++"):
            raise ValueError("torchlike times statements in Python only")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")
        scope = dict(globals or {}, _computed=_computed)
        import torchlike
        scope.setdefault("torch", torchlike)
        exec(_loop(stmt, setup), scope)
        self._run, self._timer = scope["run"], timer
        self._task_spec = TaskSpec(_flush_left(stmt), _flush_left(setup), global_setup, label, sub_label, description, env, num_threads)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One block of `number` runs, after a few that are not counted."""
        self._run(max(number // 100, 2), self._timer)
        return Measurement(number, [self._run(number, self._timer)], self._task_spec)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Blocks long enough to be timed well, for at least min_run_time seconds."""
        number = 1
        self._run(5, self._timer)
        while (taken := self._run(number, self._timer)) < min_run_time / 100 and number < 10**9:
            number *= 10
        times = [taken]
        while sum(times) < min_run_time:
            times.append(self._run(number, self._timer))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Any = None) -> Measurement:
        """blocked_autorange until the quartiles of the times lie within `threshold` of the median, or max_run_time is over."""
        made = self.blocked_autorange(callback, min_run_time)
        while not made.meets_confidence(threshold) and sum(made.raw_times) < max_run_time:
            taken = self._run(made.number_per_run, self._timer)
            if callback is not None:
                callback(made.number_per_run, taken)
            made = Measurement(made.number_per_run, [*made.raw_times, taken], self._task_spec)
        return made


from . import utils  # noqa: E402, F401  (its modules read the names above)
