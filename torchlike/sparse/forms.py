"""What runs for sparse arguments, by torch's name; imported once a program makes its first sparse tensor."""
from __future__ import annotations

from .._public import SPARSE_FORMS
from .._valueless import look_for
from . import arithmetic, compressed, conversions, coo, printing, products, reductions, shapes  # noqa: F401

for _module in (arithmetic, products, reductions, shapes):
    SPARSE_FORMS.update(_module.FORMS)
coo.define()
compressed.define()
look_for(SPARSE_FORMS)
