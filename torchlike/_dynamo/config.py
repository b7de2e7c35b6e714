"""Settings of torch._dynamo. There is no Dynamo: but for `disable` they keep what they are given, so that programs can set them."""
import os as _os
import sys as _sys
from pathlib import Path as _Path

from .._compile import stance as _stance
from ..utils._config_module import install_config_module as _install_config_module
from ..utils._config_module import table as _table


def _disable(on: bool) -> None:
    _stance.disabled = bool(on)


base_dir, debug_dir_root = str(_Path(__file__).parents[2]), _os.path.join(_os.getcwd(), "torch_compile_debug")
_install_config_module(
    _sys.modules[__name__], _table(_Path(__file__).with_suffix(".txt")), acting={"disable": (lambda: _stance.disabled, _disable)},
    deprecated={"skip_code_recursive_on_recompile_limit_hit": "does not do anything", "skip_code_recursive_on_cache_limit_hit": "does not do anything",
                "inline_inbuilt_nn_modules": "does not do anything, inline_inbuilt_nn_modules is always True"})
