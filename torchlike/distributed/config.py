"""Settings of torch.distributed: they keep what they are given, so that programs can set them. Processes are joined by sockets in any case."""
import os as _os
import sys as _sys

from ..utils._config_module import install_config_module as _install_config_module

compile_on_one_rank = bool(_os.environ.get("TORCH_DISTRIBUTED_COMPILE_ON_ONE_RANK", False))
use_torchcomms = _os.environ.get("TORCH_DISTRIBUTED_USE_TORCHCOMMS") == "1"
_install_config_module(_sys.modules[__name__])
