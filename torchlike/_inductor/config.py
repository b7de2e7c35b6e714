"""Settings of torch._inductor. There is no Inductor: they keep what they are given, so that programs can set them."""
import os as _os
import sys as _sys
from pathlib import Path as _Path

from ..utils._config_module import install_config_module as _install_config_module
from ..utils._config_module import table as _table

_install_config_module(_sys.modules[__name__], {
    **_table(_Path(__file__).with_suffix(".txt")), "compile_threads": min(32, _os.cpu_count() or 1),
    **{f"{library}.cutlass_dir": _os.environ.get("TORCHINDUCTOR_CUTLASS_DIR", "") for library in ("cutlass", "cuda", "xpu")}})
