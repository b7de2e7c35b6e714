"""What runs for sparse arguments, by torch's name; imported once a program makes its first sparse tensor."""
from __future__ import annotations

import functools

from .._exchange import exchange
from .._public import SPARSE_FORMS, called, in_place, with_out
from .._tensor import Tensor
from . import arithmetic, compressed, coo, printing, products, reductions, shapes  # noqa: F401

for _module in (arithmetic, products, reductions, shapes):
    SPARSE_FORMS.update(_module.FORMS)
coo.define()
compressed.define()
for _name in SPARSE_FORMS:  # methods that look at their arguments themselves now look for sparse ones too
    _method = vars(Tensor).get(_name)
    if _method is not None and not _name.startswith("__") and not any(_method.__code__ in f.__code__.co_consts for f in (called, with_out, in_place)):
        exchange(_method, functools.partial(called, method=True))
