"""GraphModule: a module whose forward is generated from a Graph."""
from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._tensor import Tensor
from ..nn import Module, Parameter
from ._codegen import _PyTreeCodeGen
from ._namespace import _custom_builtins
from ._readable import print_readable
from .graph import Graph, PythonCode
from .node import Node

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_numbers = itertools.count()


# -- running generated code ----------------------------------------------------------------------------------------------


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    """Run source in the dict of globals; tracebacks show its lines."""
    key = f"<eval_with_key>.{next(_numbers)}"
    if co_fields:
        key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
    linecache.cache[key] = (len(src), None, src.splitlines(keepends=True), key)  # no time of change: it is kept
    exec(compile(src, key, "exec", dont_inherit=True), globals)  # annotations are objects, whatever they are in this file


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable[..., Any]:
    scope = globals.copy()
    _exec_with_source(src, scope, co_fields)
    return scope["forward"]


def _format_import_block(globals: dict[str, Any]) -> str:
    """The statements that bind these globals in another process."""
    return "\n".join(sorted({_import_statement(name, obj) for name, obj in globals.items()}))


def _import_statement(name: str, obj: Any) -> str:
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if obj is ...:
        return f"{name} = ..."
    if isinstance(obj, str):
        return f"{name} = {obj!r}"
    module, own = obj.__module__, obj.__name__
    return f"from {module} import {own} as {name}" if own != name else f"from {module} import {own}"


# -- attributes by qualified name ----------------------------------------------------------------------------------------


def _get_attr(model: Module, attr_name: str) -> Any:
    for name in attr_name.split("."):
        model = getattr(model, name)
    return model


def _has_attr(model: Module, attr_name: str) -> bool:
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _del_attr(model: Module, attr_name: str) -> None:
    path, _, last = attr_name.rpartition(".")
    delattr(_get_attr(model, path) if path else model, last)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Let the attribute `target` of one module be one of another, too; plain modules lead to it."""
    *path, last = target.split(".")
    for name in path:
        source, there = getattr(from_module, name), getattr(to_module, name, None)
        if source is there:
            return
        if there is None:
            there = Module()
            setattr(to_module, name, there)
        from_module, to_module = source, there
    _put(getattr(from_module, last), to_module, last)


def _assign_attr(from_obj: object, to_module: Module, target: str) -> None:
    """Make an object the attribute `target` of a module."""
    *path, last = target.split(".")
    for name in path:
        there = getattr(to_module, name, None)
        if there is None:
            there = Module()
            setattr(to_module, name, there)
        to_module = there
    _put(from_obj, to_module, last)


def _put(value: Any, module: Module, name: str) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


# -- the module ----------------------------------------------------------------------------------------------------------


class _WrappedCall:
    """A call that, where generated code fails, says on which of its lines."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            ours = [f for f in frames if f.filename.startswith("<eval_with_key>")]
            if not ours:
                raise
            traceback.print_exc()
            print(_where(ours[-1]), file=sys.stderr)
            raise error.with_traceback(None)  # noqa: B904


def _where(frame: traceback.FrameSummary) -> str:
    lines = linecache.getlines(frame.filename)
    before, after = lines[max(frame.lineno - 2, 0):frame.lineno], lines[frame.lineno:frame.lineno + 2]
    return "\n".join([f"\nCall using an FX-traced Module, line {frame.lineno} of the traced Module's generated forward function:",
                      "".join(before), "~" * len(before[-1]) + "~ <--- HERE", "\n".join(after)])


class GraphModule(Module):
    """A module that runs a graph. `graph` may be changed; `recompile()` then makes `code` and `forward` anew."""

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # forward belongs to the class, so every module has a class of its own
        for base in cls.__mro__:
            if base.__qualname__ == "GraphModule.__new__.<locals>.GraphModuleImpl":
                cls = base.__bases__[0]
                break

        class GraphModuleImpl(cls):
            pass
        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
            kept = getattr(root, "meta", {}).get(_USER_PRESERVED_ATTRIBUTES_KEY, {}) if isinstance(getattr(root, "meta", None), dict) else {}
            for name, value in kept.items():
                setattr(self, name, value)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided in ``root``!")
            for target in sorted(targets, key=lambda t: t.count(".")):  # outer modules before what is in them
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls if graph._tracer_cls and "<locals>" not in graph._tracer_cls.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = dict(getattr(root, "meta", None) or {}) if isinstance(root, Module) else {}
        for hooks in _HOOKS:
            setattr(self, hooks, [])

    __jit_unused_properties__ = ["graph"]

    @property
    def graph(self) -> Graph:
        """The graph that this module runs."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python code that was generated from the graph."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate code and forward from the graph as it is now."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        python = self._graph.python_code(root_module="self")
        self._code, self._lineno_map, self._prologue_start = python.src, python._lineno_map, python._prologue_start
        cls = type(self)
        cls.forward = _forward_from_src(self._code, python.globals, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            self._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))
            cls._wrapped_call = self.__dict__.pop("_wrapped_call")

            def call_wrapped(self: GraphModule, *args: Any, **kwargs: Any) -> Any:
                return self._wrapped_call(self, *args, **kwargs)
            cls.__call__ = call_wrapped
        return python

    # -- submodules -----------------------------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a qualified name, with plain modules on the way; False where something else stands there."""
        *path, last = target.split(".")
        owner: Any = self
        for name in path:
            there = getattr(owner, name, None)
            if there is None:
                there = Module()
                setattr(owner, name, there)
            if not isinstance(there, Module):
                return False
            owner = there
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a qualified name; False where there is none."""
        *path, last = target.split(".")
        owner: Any = self
        for name in path:
            owner = getattr(owner, name, None)
            if not isinstance(owner, Module):
                return False
        if not isinstance(getattr(owner, last, None), Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node reaches."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    try:
                        inside = self.get_submodule(node.target)
                    except AttributeError:
                        continue
                    used.update(f"{node.target}.{name}" for name, _ in inside.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # -- text and files -------------------------------------------------------------------------------------------------

    def print_readable(self, print_output: bool = True, include_stride: bool = False, include_device: bool = False, colored: bool = False, *,
                       fast_sympy_print: bool = False, expanded_def: bool = False) -> str:
        """The code of this module and of the GraphModules in it, with shapes where they are known."""
        text = print_readable(self, self._get_name(), include_stride=include_stride, include_device=include_device, colored=colored,
                              expanded_def=expanded_def)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Write the module as a Python package: its code, and its state beside it."""
        from ..serialization import save

        place = Path(folder)
        place.mkdir(exist_ok=True)
        save(self.state_dict(), place / "state_dict.pt")
        lines = []
        for name, module in self.named_children():
            save(module, place / f"{name}.pt")
            lines.append(f"        self.{name} = torch.load(rf'{place / f'{name}.pt'}', weights_only=False)")
        for kind, values in (("Parameter", self._parameters), ("Buffer", self._buffers)):
            for name, value in values.items():
                if value is None:
                    continue
                empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
                made = f"torch.nn.Parameter({empty})" if kind == "Parameter" else empty
                lines.append(f"        self.{name} = {made}" if kind == "Parameter" else f"        self.register_buffer('{name}', {made})")
        code = "\n".join("    " + line if line else line for line in self._code.strip("\n").split("\n")).rstrip()
        imports = _format_import_block(self._graph.python_code("self").globals)
        (place / "module.py").write_text(f"{imports}\nfrom torchlike.nn import *  # noqa: F403\n\n\nclass {module_name}(torch.nn.Module):\n    def __init__(self):\n"
                                         "        super().__init__()\n" + "\n".join(lines)
                                         + f"\n        self.load_state_dict(torch.load(r'{place}/state_dict.pt'))\n\n{code}\n")
        (place / "__init__.py").write_text("from .module import *\n")

    # -- copies ---------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Callable, tuple]:
        body = self.__dict__.copy()
        code = self._graph.python_code("self")
        del body["_graph"]
        return reduce_graph_module, (body, _format_import_block(code.globals))

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = memo[id(self)] = type(self).__new__(type(self))  # known from now on: what it holds may hold it
        state = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        for hook in self._deepcopy_hooks:
            hook(state)
        GraphModule.__init__(made, state, state.__dict__["_graph"])
        for name, value in state.__dict__.items():
            if name not in ("_graph", "_modules", "_parameters", "_buffers"):
                made.__dict__.setdefault(name, value)
                if name in ("meta", "training", *_HOOKS) or name.endswith("_hooks"):
                    made.__dict__[name] = value
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = getattr(self, "meta", {})
        return made

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = self.__copy__()
        made._is_replica = True
        return made

    # -- hooks ----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[[Node, str, Node], object]) -> Iterator[None]:
        self._replace_hooks.append(f)
        try:
            yield
        finally:
            self._replace_hooks.remove(f)

    def _register_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable) -> None:
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable) -> None:
        self._deepcopy_hooks.remove(f)


# -- from a pickle -------------------------------------------------------------------------------------------------------


class _CodeOnlyModule(Module):
    """The state of a GraphModule without its graph."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """A GraphModule from its state and code: the code is traced again."""
    code = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + code, {}), body)


def _deserialize_graph_module(forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: type | None = None) -> Module:
    from ._symbolic_trace import Tracer

    state = _CodeOnlyModule(body)

    class CodeOnly(_CodeOnlyModule):
        pass
    CodeOnly.forward = forward
    state.__class__ = CodeOnly

    class KeepModules(body.get("_tracer_cls") or Tracer):
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True
    graph = KeepModules().trace(state, **(body.get("_tracer_extras") or {}))
    graph._tracer_cls = body.get("_tracer_cls")
    made = (graph_module_cls or GraphModule)(state, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if name not in made.__dict__:
            setattr(made, name, value)
    return made
