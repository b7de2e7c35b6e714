"""Translations of operations into ONNX nodes, a file per family."""
from . import _indexing, _layers, _pointwise, _pools, _products, _recurrent, _reductions, _shapes  # noqa: F401
from ._table import NAMES, TABLE, WHOLE  # noqa: F401
