"""Quantized tensors: integers and what they stand for. Imported once a program makes the first one."""
from . import forms  # noqa: F401
