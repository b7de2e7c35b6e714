"""torch.ao.pruning: weights whose small elements are zeros, chosen again from time to time while a model trains."""
from .scheduler.base_scheduler import BaseScheduler  # noqa: F401
from .scheduler.cubic_scheduler import CubicSL  # noqa: F401
from .scheduler.lambda_scheduler import LambdaSL  # noqa: F401
from .sparsifier.base_sparsifier import BaseSparsifier  # noqa: F401
from .sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier  # noqa: F401
from .sparsifier.utils import FakeSparsity, fqn_to_module, get_arg_info_from_tensor_fqn, module_to_fqn  # noqa: F401
from .sparsifier.weight_norm_sparsifier import WeightNormSparsifier  # noqa: F401
