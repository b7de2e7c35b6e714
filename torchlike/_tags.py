"""torch.Tag: what is known of an operator, and which of PyTorch's have which."""
from __future__ import annotations

import enum
import functools
from pathlib import Path


class _Tag(enum.Enum):
    def __int__(self) -> int:
        return self.value

    __index__ = __int__


Tag = _Tag("Tag", "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view maybe_aliasing_or_mutating "
                  "needs_contiguous_strides needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
                  "pointwise pt2_compliant_tag reduction view_copy", start=0, module="torch")


@functools.cache
def _known() -> dict[str, list[Tag]]:
    """Those of operators and of single overloads, from a file of lines `tags: names`. All of PyTorch's have `pt2_compliant_tag` besides."""
    lines = (Path(__file__).parent / "_tags.txt").read_text().splitlines()
    return {name: sorted((Tag[t] for t in tags.split()), key=int) for tags, _, names in (line.partition(": ") for line in lines) for name in names.split()}


def tags_of(name: str, overload: str) -> list[Tag]:
    """An operator's of torch.ops.aten."""
    found = _known().get(f"{name}.{overload}", _known().get(name, []))
    return sorted((*found, Tag.pt2_compliant_tag), key=int)
