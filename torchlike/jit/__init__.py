"""TorchScript's marks. Programs are compiled by recording them, so a marked function simply runs as it is written."""

from .annotations import Final  # noqa: F401
from .script import annotate, export, ignore, is_scripting, is_tracing, script, script_if_tracing, unused  # noqa: F401
