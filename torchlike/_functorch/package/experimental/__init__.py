"""functorch.experimental: what torch.func has by now, and chunk_vmap."""
from ....func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_  # noqa: F401
from ...apis import chunk_vmap  # noqa: F401
