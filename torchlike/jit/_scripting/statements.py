"""Statements: which variables there are after them, of which types, and whether what follows is reached."""
from __future__ import annotations

import ast
from typing import Any

from ...autograd.grad_mode import no_grad
from . import schemas
from .calls import Calls
from .expressions import _BINARY, Condition
from .types import BOOL, FLOAT, INT, NONE, NUMBER, STR, TENSOR, Type, fits, unified, union, without_none
from .values import Held, Outside, Several, Value, literal, quoted, tuple_of

_TAKEN = frozenset("""torch ops CONSTANTS annotate inf nan infj nanj print uninitialized unchecked_cast fork awaitable Tensor List Dict Tuple Optional Union Any int
    float bool str complex number Device NoneType range zip enumerate isinstance getattr hasattr tuple list dict len min max abs round sum sorted __torch__
    from raise assert del with global def class lambda""".split())
SHADOWS = frozenset("torch ops CONSTANTS annotate inf nan print uninitialized range zip enumerate isinstance getattr int float bool __torch__".split())
_IN_PLACE = {"add": "add_", "sub": "sub_", "mul": "mul_", "div": "div_", "remainder": "remainder_", "floordiv": "floor_divide_", "pow": "pow_",
             "__and__": "bitwise_and_", "__or__": "bitwise_or_", "__xor__": "bitwise_xor_", "__lshift__": "__ilshift__", "__rshift__": "__irshift__", "matmul": "matmul"}
NO_GRAD = "__torch__.torch.autograd.grad_mode.no_grad"
RETURNED = "\0returned"  # stands for the type that the function returns, until that is known


class Statements(Calls):
    """The part of a function's compiler that reads statements."""

    def prepare(self, body: list[ast.stmt]) -> None:
        self.assigned = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.lines: list[str] = []
        self.unrolling = self.looping = 0
        self.at_start = False  # whether what a statement evaluates first is read
        self.kept_names = 0

    def word(self, name: str) -> str:
        """A variable's name in the text."""
        return name + "_" if name in _TAKEN and name not in self.parameters else name

    def kept(self, v: Value, node: Any) -> str:
        """A name for a value that is used several times."""
        if v.text.replace(".", "").isidentifier():
            return v.text
        if not self.at_start:
            raise self.source.error(node, "a tuple that a call makes cannot be taken apart within an expression: give it a name before")
        self.kept_names += 1
        name = f"__{self.kept_names}"
        self.lines.append(f"{name} = {v.text}")
        return name

    def block(self, body: list[ast.stmt]) -> tuple[list[str], bool]:
        """A block's lines, and whether it leaves the function or the loop."""
        outer, self.lines = self.lines, []
        try:
            leaves = self.statements(body)
            return self.lines or ["pass"], leaves
        finally:
            self.lines = outer

    def nested(self, head: str, lines: list[str]) -> None:
        self.lines += [head, *("  " + line for line in lines)]

    def statements(self, body: list[ast.stmt]) -> bool:
        return any(self.statement(s) for s in body)  # what follows a return is not read

    def statement(self, node: ast.stmt) -> bool:
        """Writes a statement; whether nothing after it is reached."""
        form = getattr(self, "do_" + type(node).__name__, None)
        if form is None:
            raise self.source.unsupported(node)
        return bool(form(node))

    # -- plain ones -----------------------------------------------------------------------------------------------------------

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        made = self.sugar(node.value)
        if isinstance(made, Value) and "(" in made.text and not made.known:
            self.lines.append(made.text)

    def do_Return(self, node: ast.Return) -> bool:
        wanted = self.returns
        if node.value is None:
            v = Value("None", NONE)
        elif wanted is not None:
            v = self.typed(node.value, wanted) if not isinstance(node.value, ast.Call) else self._returned(node.value, wanted)
        else:
            v = self.value(node.value)
        self.gives(v.type, node)
        self.lines.append(f"return {v.text}")
        return True

    def _returned(self, node: ast.expr, wanted: Type) -> Value:
        v = self.annotated(node, wanted) if isinstance(node.func, ast.Attribute) and node.func.attr == "tolist" else self.value(node)
        if not fits(v.type, wanted):
            try:
                return Value(schemas.converted(v, wanted), wanted)
            except schemas.Mismatch:
                raise self.source.error(node, f"Return value was annotated as having type {wanted} but is actually of type {v.type}") from None
        return v

    def gives(self, t: Type, node: Any) -> None:
        """A return of this type."""
        if self.returns is not None:
            if not fits(t, self.returns):
                raise self.source.error(node, f"Return value was annotated as having type {self.returns} but is actually of type {t}")
            return
        common = t if self.found is None else unified(self.found, t)
        if common is None:
            raise self.source.error(node, f"Previous return statement returned a value of type {self.found} but this return statement returns a value of type {t}")
        self.found = common

    def do_Raise(self, node: ast.Raise) -> bool:
        if node.exc is None:
            raise self.source.not_supported(node, "a raise without an exception is not supported")
        call = node.exc if isinstance(node.exc, ast.Call) else None
        kind = self.sugar(call.func if call else node.exc)
        if not isinstance(kind, Outside) or not (isinstance(kind.value, type) and issubclass(kind.value, BaseException)):
            raise self.source.error(node, "only exceptions can be raised")
        args = [self.value(x) for x in call.args] if call else []
        message = Value('""', STR) if not args else args[0] if len(args) == 1 else tuple_of(args)
        self._raises(kind.value, message.text if message.type == STR else self.operator(node, "str", message).text)
        return True

    def _raises(self, kind: type, message: str) -> None:
        self.lines += [f"ops.prim.RaiseException({message}, {quoted(f'{kind.__module__}.{kind.__qualname__}')})", f"return {RETURNED}"]

    def do_Assert(self, node: ast.Assert) -> bool:
        test = self.condition(node.test)
        if test.static is True:
            self.scope[-1].update(self.refined(test.true))
            return False
        outer, self.lines = self.lines, []
        try:
            with self.frame(self.refined(test.false)):
                message = self.value(node.msg) if node.msg is not None else Value('""', STR)
                self._raises(AssertionError, message.text if message.type == STR else self.operator(node, "str", message).text)
        finally:
            lines, self.lines = self.lines, outer
        if test.static is False:
            self.lines += lines
            return True
        self.nested(f"if {test.text}:", ["pass"])
        self.nested("else:", lines)
        self.scope[-1].update(self.refined(test.true))
        return False

    def do_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.scope[-1]:
                self.scope[-1][target.id] = f"{target.id} was deleted"
            elif isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
                self.lines.append(self.operator(node, "Delete", self.value(target.value), self.value(target.slice)).text)
            else:
                raise self.source.unsupported(node)

    # -- assignments ----------------------------------------------------------------------------------------------------------

    def do_Assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        made = self.sugar(node.value, self._hint(first))
        self.assign(first, made, node)
        for target in node.targets[1:]:
            self.assign(target, self.sugar(ast.copy_location(ast.Name(first.id, ast.Load()), first)) if isinstance(first, ast.Name) else made, node)

    def _hint(self, target: ast.expr) -> Type | None:
        """The type that a target has already, for empty lists."""
        if isinstance(target, ast.Name):
            held = self.find(target.id)
            return held.type if isinstance(held, Value) and held.type.name in ("List", "Dict", "Optional") else None
        if isinstance(target, ast.Attribute):
            held = self.sugar(target)
            return held.type if isinstance(held, Value) else None
        return None

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.source.unsupported(node, "without assigned value")
        if not isinstance(node.target, ast.Name):
            raise ValueError(f"Type annotations on instance attributes must be declared in __init__, not '{self.source.f.__name__}': {self.source.place(node)}")
        if any(isinstance(frame.get(node.target.id), Value) for frame in self.scope[:-1]):
            raise self.source.error(node, f"Attempting to declare and annotate the type of variable '{node.target.id}' that is already defined in an outer block")
        self.assign(node.target, self.annotated(node.value, self.source.kind(node.annotation)), node)

    def assign(self, target: ast.expr, made: Any, node: Any) -> None:
        """`target = made`."""
        if isinstance(target, ast.Name):
            self.set_variable(target.id, made, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, made, node)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(target, self.first_class(made, node), node)
        elif isinstance(target, ast.Subscript):
            self._set_item(target, self.first_class(made, node), node)
        else:
            raise self.source.unsupported(target)

    def set_variable(self, name: str, made: Any, node: Any) -> None:
        outer = next((frame[name] for frame in reversed(self.scope[:-1]) if name in frame), None)
        if isinstance(outer, str):
            outer = None
        if outer is not None and not isinstance(outer, Value):
            raise self.source.error(node, f"Cannot re-assign '{name}' because it has type {type(outer).__name__.lower()} and {name} is not a first-class value. "
                                          "Only reassignments to first-class values are allowed")
        if isinstance(made, Outside) and literal(made.value) is not None or isinstance(made, Several) and all(isinstance(x, Value) for x in made.items):
            made = self.first_class(made, node)
        if not isinstance(made, Value):
            if outer is not None:
                raise self.source.error(node, f"Cannot re-assign '{name}' to a value of type {type(made).__name__.lower()}")
            self.scope[-1][name] = made
            return
        text = made.text
        if outer is not None:
            try:
                text = schemas.converted(made, outer.type)
            except schemas.Mismatch:
                raise self.source.error(node, f"Variable '{name}' previously had type {outer.type} but is now being assigned to a value of type {made.type}") from None
        if text != self.word(name):
            self.lines.append(f"{self.word(name)} = {text}")
        kind = made.type if outer is None or fits(made.type, outer.type) else without_none(outer.type)
        self.scope[-1][name] = Value(self.word(name), kind, made.constant, made.loose)

    def _unpack(self, target: Any, made: Any, node: Any) -> None:
        if any(isinstance(t, ast.Starred) for t in target.elts):
            raise self.source.not_supported(node, "starred targets are not supported")
        listed = isinstance(made, Value) and made.type.name == "List"
        if isinstance(made, Value) and (listed or made.type.name == "Tuple") and not made.known:
            kinds = [made.type.args[0]] * len(target.elts) if listed else list(made.type.args)
            if len(kinds) != len(target.elts):
                raise self.source.error(node, f"Provided {len(target.elts)} variables to unpack a tuple of {len(kinds)}")
            words = []
            for t in target.elts:
                self.kept_names += not isinstance(t, ast.Name)
                words.append(self.word(t.id) if isinstance(t, ast.Name) else f"__{self.kept_names}")
            self.lines.append(f"{', '.join(words)}{',' * (len(words) == 1)} = {made.text}")
            for t, word, kind in zip(target.elts, words, kinds):
                self.assign(t, Value(word, kind), node)
            return
        parts = self.parts(made, node)
        if parts is None:
            raise self.source.error(node, f"{getattr(made, 'type', type(made).__name__)} cannot be used as a tuple")
        if len(parts) != len(target.elts):
            raise self.source.error(node, f"Provided {len(target.elts)} variables to unpack a tuple of {len(parts)}")
        parts = [Value(self._copied(x), x.type) if isinstance(x, Value) and not x.known and len(parts) > 1 else x for x in parts]
        for t, x in zip(target.elts, parts):
            self.assign(t, x, node)

    def _copied(self, v: Value) -> str:
        """A value that assignments beside it must not change: `a, b = b, a`."""
        self.kept_names += 1
        self.lines.append(f"__{self.kept_names} = {v.text}")
        return f"__{self.kept_names}"

    def set_attribute(self, target: ast.Attribute, v: Value, node: Any) -> None:
        owner = self.sugar(target.value)
        if not isinstance(owner, Held):
            raise self.source.error(node, f"Tried to set an attribute: {target.attr} on a non-class")
        held = self.program.attribute(self, node, owner, target.attr)
        if not isinstance(held, Value) or held.known or not held.text.endswith(target.attr):
            raise self.source.error(node, f"Cannot assign to '{target.attr}' of module '{type(owner.module).__name__}', which is a constant, a module or a method")
        try:
            self.lines.append(f"{held.text} = {schemas.converted(v, held.type)}")
        except schemas.Mismatch:
            raise self.source.error(node, f"Wrong type for attribute assignment. Expected {held.type} but got {v.type}") from None

    def _set_item(self, target: ast.Subscript, v: Value, node: Any) -> None:
        held = self.value(target.value)
        place = self.item(target, held)
        if held.type == TENSOR:
            if v.type not in (TENSOR, INT, FLOAT, NUMBER, BOOL):
                raise self.source.error(node, f"a value of type {v.type} cannot be written into a tensor")
        elif held.type.name not in ("List", "Dict"):
            raise self.source.error(node, f"'{held.type}' object does not support item assignment")
        elif isinstance(target.slice, ast.Slice):
            raise self.source.error(node, "Sliced assignment of lists is not supported")
        else:
            try:
                v = Value(schemas.converted(v, place.type), place.type)
            except schemas.Mismatch as reason:
                raise self.source.error(node, str(reason)) from None
        self.lines.append(f"{place.text} = {v.text}")

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        name = _BINARY[type(node.op)]
        old = self.value(ast.copy_location(_loaded(node.target), node.target))
        by = self.value(node.value)
        if old.type == TENSOR and name != "matmul" or old.type.name == "List" and name in ("add", "mul"):
            made = self.operator(node, _IN_PLACE[name] if old.type == TENSOR else name + "_", old, by)
            if isinstance(node.target, ast.Name):
                self.set_variable(node.target.id, made, node)
            else:  # the tensor or list itself has changed
                self.lines.append(made.text)
            return
        self.assign(node.target, self.binary(node, name, old, by), node)

    def do_With(self, node: ast.With) -> bool:
        made = [self._outside_class(item.context_expr) for item in node.items]
        if any(item.optional_vars is not None for item in node.items) or any(cls is not no_grad for cls in made):
            raise self.source.unsupported(node, "other than `with torch.no_grad():`")
        self.program.no_grad = True
        self.kept_names += 1
        name = f"__{self.kept_names}"
        self.lines += [f"{name} = {NO_GRAD}.__new__({NO_GRAD})", f"__{self.kept_names}_ = {name}.__init__()"]
        lines, leaves = self.block(node.body)
        self.nested(f"with {name}:", lines)
        return leaves

    def _outside_class(self, node: ast.expr) -> Any:
        """The class that a call without arguments makes an instance of."""
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            return None
        made = self.sugar(node.func)
        return made.value if isinstance(made, Outside) else None

    # -- branches and loops ---------------------------------------------------------------------------------------------------

    def do_If(self, node: ast.If) -> bool:
        test = self.condition(node.test)
        if test.static is not None:
            self.scope[-1].update(self.refined(test.true if test.static else test.false))
            return self.statements(node.body if test.static else node.orelse)
        with self.frame(self.refined(test.true)) as true:
            body, true_leaves = self.block(node.body)
        with self.frame(self.refined(test.false)) as false:
            orelse, false_leaves = self.block(node.orelse)
        self.nested(f"if {test.text}:", body)
        if orelse != ["pass"]:
            self.nested("else:", orelse)
        if true_leaves and false_leaves:
            return True
        self._join(true, false, true_leaves, false_leaves)
        return False

    def _join(self, true: dict[str, Any], false: dict[str, Any], true_leaves: bool, false_leaves: bool) -> None:
        """The variables after an if, of what its branches leave."""
        for name in {**true, **false}:
            a, b = true.get(name, self.find(name)), false.get(name, self.find(name))
            if true_leaves or false_leaves:
                remaining = b if true_leaves else a
                if remaining is not None:
                    self.scope[-1][name] = _varying(remaining)
            elif a is None or b is None:
                self.scope[-1][name] = f"{name} is not defined in the {'true' if a is None else 'false'} branch"
            elif isinstance(a, str) or isinstance(b, str):
                self.scope[-1][name] = a if isinstance(a, str) else b
            elif not isinstance(a, Value) or not isinstance(b, Value):
                self.scope[-1][name] = a if a is b else f"{name} is not the same module or function in both branches"
            else:
                outer = self.find(name)
                several = isinstance(outer, Value) and (outer.type.name == "Union" or outer.type == NUMBER)
                common = unified(a.type, b.type) or (union([a.type, b.type]) if several else None)
                self.scope[-1][name] = Value(self.word(name), common) if common is not None else \
                    f"Type mismatch: {name} is set to type {a.type} in the true branch and type {b.type} in the false branch"

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.source.not_supported(node, "else branches of while loops aren't supported")
        with self.frame(self._carried(node)):
            test = self.condition(node.test)
        if test.static is not False:
            self._loop(f"while {test.text if test.static is None else 'True'}:", node, test, None, None)

    def _carried(self, node: Any) -> dict[str, Any]:
        """The variables that a loop changes: what they are is not known in it."""
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return {name: _varying(x) for name in stored for x in [self.find(name)] if x is not None}

    def _loop(self, head: str, node: Any, test: Condition, target: ast.expr | None, item: Type | None) -> None:
        self.looping += 1
        unrolling, self.unrolling = self.unrolling, 0
        carried = self._carried(node)
        with self.frame(carried), self.frame(self.refined(test.true)):
            outer, self.lines = self.lines, []
            try:
                if target is not None:
                    head = head.replace("\0", self._loop_variable(target, item, node))
                self.statements(node.body)
            finally:
                lines, self.lines = self.lines, outer
        self.nested(head, lines or ["pass"])
        self.looping -= 1
        self.unrolling = unrolling
        self.scope[-1].update(carried)

    def _loop_variable(self, target: ast.expr, item: Type, node: Any) -> str:
        """The text of a loop's target, whose names are variables of the body."""
        for t in ast.walk(target):
            if isinstance(t, ast.Name) and isinstance(self.find(t.id), Value):
                break
        else:
            return self.bind(target, Value("", item))
        self.kept_names += 1  # a name that is known outside must keep its type
        name = f"__{self.kept_names}"
        self.assign(target, Value(name, item), node)
        return name

    def do_For(self, node: ast.For) -> bool:
        if node.orelse:
            raise self.source.not_supported(node, "else branches of for loops aren't supported")
        self.at_start = True
        over = self.sugar(node.iter)
        parts = self.parts(over, node)
        self.at_start = False
        if parts is not None:
            self.unrolling += 1
            for part in parts:
                self.assign(node.target, part, node)
                if self.statements(node.body):
                    self.unrolling -= 1
                    return True
            self.unrolling -= 1
            return False
        text, item = self.iterated(over, node.iter)
        self._loop(f"for \0 in {text}:", node, Condition(""), node.target, item)
        return False

    def do_Break(self, node: Any) -> bool:
        word = type(node).__name__.lower()
        if self.unrolling:
            raise self.source.error(node, "Because we emit iteration over Modulelists or Tuples as unrolled loops, we do not support break or continue inside the "
                                          "body of these loops")
        if not self.looping:
            raise self.source.error(node, f"{word} statement outside of a loop")
        self.lines.append(word)
        return True

    do_Continue = do_Break


def _varying(x: Any) -> Any:
    """A variable whose value is no longer known."""
    return Value(x.text, x.type) if isinstance(x, Value) and x.known and x.type != NONE else x


def _loaded(target: ast.expr) -> ast.expr:
    """A target as an expression."""
    return ast.parse(ast.unparse(target), mode="eval").body


