"""`GraphModule.print_readable`: generated code as a class, with the classes of the GraphModules in it."""
from __future__ import annotations

from typing import Any


def print_readable(module: Any, name: str, **options: Any) -> str:
    """The text for a module and its children; it ends with an end of line."""
    code = module._graph.python_code("self", verbose=True, **options).src.lstrip("\n")
    code = "\n".join(line if line.strip() else "" for line in code.split("\n"))
    parts = [f"class {name}(torch.nn.Module):\n" + _indented(code)]
    for child_name, child in module.named_children():
        if hasattr(child, "_graph"):
            parts.append(_indented(print_readable(child, child_name, **options)))
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join("    " + line if line else line for line in text.split("\n"))
