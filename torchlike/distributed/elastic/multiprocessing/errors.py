"""record: the error with which a program ends, in the file that TORCHELASTIC_ERROR_FILE names."""
from __future__ import annotations

import faulthandler
import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["record"]


def record(fn: Callable, error_handler: Any = None) -> Callable:
    """Decorator for a program's main function: an exception that ends it is written to the file before it goes on."""
    @functools.wraps(fn)
    def main(*args: Any, **kwargs: Any) -> Any:
        if error_handler is not None:
            error_handler.initialize()
        elif not faulthandler.is_enabled():
            faulthandler.enable(all_threads=True)
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except Exception as error:
            if error_handler is not None:
                error_handler.record_exception(error)
            else:
                _write(error)
            raise
    return main


def _write(error: Exception) -> None:
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path:
        about = {"message": f"{type(error).__name__}: {error}",
                 "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}
        with open(path, "w") as stream:
            json.dump({"message": about}, stream)
