"""The operations, one file per family. Importing a family publishes its functions and methods."""
from . import (  # noqa: F401
    autograd_methods,
    basic,
    creation,
    indexing,
    joining,
    matmul,
    objects,
    pointwise,
    queries,
    random,
    reductions,
    rnn,
    softmax,
    unary,
    views,
)
