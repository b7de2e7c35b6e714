"""Tensors of random sizes and strides, for times over many of them. From the same seed they are PyTorch's."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._public import FUNCTIONS
from ..._tensor import Tensor

_ATTEMPTS = 1000


class ParameterAlias:
    """The value of another parameter, as one that may be drawn."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number that is drawn: between two bounds (inclusive), "uniform" or "loguniform", or from a dictionary of values and their probabilities.

    A `strict` one is drawn once where the others are drawn again until tensors meet what is asked of them. AssertionError for another distribution.
    """

    def __init__(self, name: str, minval: float | None = None, maxval: float | None = None, distribution: str | dict[Any, float] | None = None,
                 strict: bool = False) -> None:
        if isinstance(distribution, dict):
            _need(all(p >= 0 for p in distribution.values()), "Probabilities cannot be negative")
            _need(abs(sum(distribution.values()) - 1) <= 1e-5, "Distribution is not normalized")
            _need(minval is None, "When passing a custom distribution, 'minval' must be None")
            _need(maxval is None, "When passing a custom distribution, 'maxval' must be None")
        else:
            _need(distribution in ("loguniform", "uniform"), f"Unknown distribution: {distribution}")
        self._name, self._minval, self._maxval, self._distribution, self.strict = name, minval, maxval, distribution, strict

    @property
    def name(self) -> str:
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """A value, drawn by `state`."""
        low, high, kind = self._minval, self._maxval, self._distribution
        if isinstance(kind, dict):
            return list(kind)[state.choice(np.arange(len(kind)), p=tuple(kind.values()))]
        if kind == "loguniform":
            found = int(2 ** state.uniform(low=None if low is None else np.log2(low), high=None if high is None else np.log2(high)))
            return low if low is not None and found < low else high if high is not None and found > high else found
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


def _need(holds: bool, said: str) -> None:
    if not holds:
        raise AssertionError(said)


class FuzzedTensor:
    """A tensor whose sizes and steps are numbers or names of parameters; of as many dimensions as `dim_parameter` says.

    `probability_contiguous`: how often its dimensions lie in order. It is a slice of a larger one where there are steps. `tensor_constructor(size, dtype,
    **parameters)` makes it in place of `rand` and `randint`.
    """

    def __init__(self, name: str, size: tuple[str | int, ...], steps: tuple[str | int, ...] | None = None, probability_contiguous: float = 0.5,
                 min_elements: int | None = None, max_elements: int | None = None, max_allocation_bytes: int | None = None,
                 dim_parameter: str | None = None, roll_parameter: str | None = None, dtype: dt.dtype = dt.float32, cuda: bool = False,
                 tensor_constructor: Callable | None = None) -> None:
        self._name, self._size, self._steps, self._probability_contiguous = name, size, steps, probability_contiguous
        self._min_elements, self._max_elements, self._max_allocation_bytes = min_elements, max_elements, max_allocation_bytes
        self._dim_parameter, self._dtype, self._cuda, self._tensor_constructor = dim_parameter, dtype, cuda, tensor_constructor

    @property
    def name(self) -> str:
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: dt.dtype, **kwargs: Any) -> Tensor:
        """Uniform numbers, or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return FUNCTIONS["rand"](size, dtype=dtype)
        return FUNCTIONS["randint"](1, 127, size, dtype=dtype)

    def _make_tensor(self, params: dict[str, Any], state: np.random.RandomState) -> tuple[Tensor, dict[str, Any]]:
        size, steps, allocated = self._sizes(params)
        made = (self._tensor_constructor or self.default_tensor_constructor)(size=allocated, dtype=self._dtype, **params)
        made = made.cuda() if self._cuda else made
        order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.all(order == np.arange(len(size))):
                order = state.permutation(made.dim())
            made = made.permute([int(d) for d in order]).contiguous().permute([int(d) for d in np.argsort(order)])
        made = made[tuple(slice(0, n * step, step) for n, step in zip(size, steps))]
        return made, {"numel": int(made.numel()), "order": order, "steps": steps, "is_contiguous": made.is_contiguous(), "dtype": str(self._dtype)}

    def _sizes(self, params: dict[str, Any]) -> tuple[tuple, tuple, tuple]:
        """The sizes, the steps, and the sizes of what it is a slice of."""
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]
        size, steps = [(tuple(params.get(x, x) for x in given) + (1,) * dim)[:dim] for given in (self._size, self._steps or ())]
        return size, steps, tuple(n * step for n, step in zip(size, steps))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether these parameters give it a number of elements and bytes within its bounds."""
        size, _, allocated = self._sizes(params)
        elements, room = math.prod(map(int, size)), self._dtype.itemsize * math.prod(map(int, allocated))
        _need(elements >= 0, "Computed number of elements is negative")
        return not (self._max_elements is not None and elements > self._max_elements or self._min_elements is not None and elements < self._min_elements
                    or self._max_allocation_bytes is not None and room > self._max_allocation_bytes)


class FuzzedSparseTensor(FuzzedTensor):
    """A COO tensor. It reads the parameters "density", "coalesced" and, where `sparse_dim` is given, "sparse_dim"."""

    def __init__(self, name: str, size: tuple[str | int, ...], min_elements: int | None = None, max_elements: int | None = None,
                 dim_parameter: str | None = None, sparse_dim: str | None = None, nnz: str | None = None, density: str | None = None,
                 coalesced: str | None = None, dtype: dt.dtype = dt.float32, cuda: bool = False) -> None:
        super().__init__(name, size, min_elements=min_elements, max_elements=max_elements, dim_parameter=dim_parameter, dtype=dtype, cuda=cuda)
        self._sparse_dim, self._density, self._coalesced = sparse_dim, density, coalesced

    @staticmethod
    def sparse_tensor_constructor(size: Any, dtype: dt.dtype, sparse_dim: int, nnz: int, is_coalesced: bool) -> Tensor:
        """nnz entries at places that are drawn; each twice where it is not to be coalesced. AssertionError for entries of a size without places."""
        size = [size] * sparse_dim if isinstance(size, (int, float)) else list(size)
        _need(any(n > 0 for n in size[:sparse_dim]) or not nnz, "invalid arguments")
        values = FuzzedTensor.default_tensor_constructor([nnz, *size[sparse_dim:]], dtype)
        places = FUNCTIONS["rand"](sparse_dim, nnz)
        places = (places * FUNCTIONS["tensor"](size[:sparse_dim]).unsqueeze(1).to(places)).to(dt.int64)
        if not is_coalesced:
            values, places = FUNCTIONS["cat"]([values, FUNCTIONS["randn_like"](values)], 0), FUNCTIONS["cat"]([places, places], 1)
        made = FUNCTIONS["sparse_coo_tensor"](places, values, size)
        return made.coalesce() if is_coalesced else made

    def _make_tensor(self, params: dict[str, Any], state: np.random.RandomState) -> tuple[Tensor, dict[str, Any]]:
        size, _, _ = self._sizes(params)
        density = params["density"]
        nnz = math.ceil(sum(size) * density)
        _need(nnz <= sum(size), "nnz cannot exceed total number of elements")
        made = self.sparse_tensor_constructor(size, self._dtype, min(params["sparse_dim"] if self._sparse_dim else len(size), len(size)), nnz, params["coalesced"])
        made = made.cuda() if self._cuda else made
        return made, {"numel": int(made.numel()), "shape": made.size(), "is_coalesced": made.is_coalesced(), "density": density, "sparsity": 1.0 - density,
                      "sparse_dim": made.sparse_dim(), "dense_dim": made.dense_dim(), "is_hybrid": len(size) > made.sparse_dim(), "dtype": str(self._dtype)}


class Fuzzer:
    """Draws parameters until all tensors and `constraints` (functions of the dictionary of parameters) take them, and makes the tensors.

    ValueError for a name that a parameter and a tensor have, and where 1,000 draws find nothing.
    """

    def __init__(self, parameters: list[FuzzedParameter | list[FuzzedParameter]], tensors: list[FuzzedTensor | list[FuzzedTensor]],
                 constraints: list[Callable] | None = None, seed: int | None = None) -> None:
        self._seed = int(np.random.RandomState().randint(0, 2 ** 32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters, self._tensors = self._unpack(parameters, FuzzedParameter), self._unpack(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        both = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = self._total_generated = 0

    @staticmethod
    def _unpack(values: Sequence, kind: type) -> tuple:
        return tuple(x for value in values for x in ([value] if isinstance(value, kind) else value))

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, dict], dict[str, Any]]]:
        """n times: the tensors by name, what they are like, and the parameters. It seeds the default generator."""
        state = np.random.RandomState(self._seed)
        FUNCTIONS["manual_seed"](int(state.randint(low=0, high=2 ** 63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {name: t for name, (t, _) in made.items()}, {name: about for name, (_, about) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The part of the draws that were not taken."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        strict: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            drawn = {p.name: strict[p.name] if p.name in strict else p.sample(state) for p in self._parameters}
            strict = {p.name: drawn[p.name] for p in self._parameters if p.strict}
            params = self._resolved(drawn)
            self._total_generated += 1
            if all(f(params) for f in self._constraints) and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolved(params: dict[str, Any]) -> dict[str, Any]:
        """The parameters with values in the place of aliases."""
        params = dict(params)
        while left := [name for name, x in params.items() if isinstance(x, ParameterAlias)]:
            for name in left:
                params[name] = params[params[name].alias_to]
            if sum(isinstance(x, ParameterAlias) for x in params.values()) == len(left):
                raise ValueError(f"ParameterAlias cycle detected\n{params}")
        return params
