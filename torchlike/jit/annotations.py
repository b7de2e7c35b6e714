"""The types that TorchScript code imports from here."""

from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: F401, UP035
