"""Settings of torch._functorch. `aot_function` asks none of them: they keep what they are given, so that programs can set them."""
import os as _os
import sys as _sys
from pathlib import Path as _Path

from ..utils._config_module import install_config_module as _install_config_module
from ..utils._config_module import table as _table

_install_config_module(_sys.modules[__name__], {
    **_table(_Path(__file__).with_suffix(".txt")), "error_on_custom_op_aliasing": bool(_os.environ.get("CI"))})
