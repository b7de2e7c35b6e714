"""The case table: every row of every family."""
from cases import (
    comparison,
    conv_pool,
    creation,
    elementwise,
    indexing,
    linalg,
    losses,
    masked,
    nn_functional,
    random,
    reductions,
    shape_views,
    sorting,
    tensor_methods,
)

FAMILIES = (elementwise, comparison, reductions, sorting, shape_views, indexing, linalg, creation, random,
    nn_functional, losses, conv_pool, tensor_methods, masked)
CASES = [row for family in FAMILIES for row in family.CASES]
