"""What the DataLoader is made of."""
import atexit
import sys

from torchlike._utils import ExceptionWrapper  # noqa: F401

IS_WINDOWS = sys.platform == "win32"
HAS_NUMPY = True
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks whether the other side still lives, should the system's notice of its end be late
python_exit_status = False  # whether Python is ending


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)

from . import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402  (they read the interval)

__all__ = ["collate", "fetch", "pin_memory", "signal_handling", "worker"]
