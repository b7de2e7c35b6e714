"""torch.fx: arguments that a trace takes, and what copies, transformations, code generators and matchers keep: against real torch."""
from collections import namedtuple
from enum import Enum
from importlib import import_module

from same import caught, same

Pair = namedtuple("Pair", "a b")


class Side(Enum):
    LEFT = 1


def keep(x, *others):
    return x


def _fx(torch):
    return import_module(torch.__name__ + ".fx")


def _text(gm):
    return str(gm.graph), gm.code


@same
def test_arguments_that_are_no_tensors(torch):
    """Members of enumerations, layouts and modules in a call; a module that is none of the root's is refused."""
    fx = _fx(torch)

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.b = torch.nn.Sequential(torch.nn.ReLU())

        def forward(self, x):
            return keep(x, self.b[0], self.b, Side.LEFT) + torch.empty_like(x, layout=torch.strided).fill_(1)
    tracer = fx.Tracer(autowrap_functions=(keep,))
    root = M()
    graph = tracer.trace(root)
    other = torch.nn.ReLU()
    return (str(graph), graph.python_code("self").src, fx.GraphModule(root, graph)(torch.ones(2)),
            caught(fx.Tracer(autowrap_functions=(keep,)).trace, lambda x: keep(x, other)))


@same
def test_as_many_arguments_as_the_tuple_has(torch):
    fx = _fx(torch)

    def f(a, *rest):
        return a + rest[0] * rest[1]

    def g(a, *rest, k=1):
        return a
    PH = fx.PH
    traced = fx.symbolic_trace(f, concrete_args=(PH, PH, 3))
    return _text(traced), traced(1, 2, 3), caught(fx.symbolic_trace, f, (PH,)), caught(fx.symbolic_trace, g, (PH, PH, PH))


@same
def test_placeholders_with_attributes(torch):
    symbolic = import_module(torch.__name__ + ".fx._symbolic_trace")
    traced = symbolic.symbolic_trace(lambda a, b: a["f"] + b, {"a": {"f": symbolic.PHWithMeta(ph_key="x")}, "b": symbolic.PHWithMeta(ph_key="y")})
    return [(n.name, getattr(n, "ph_key", None)) for n in traced.graph.nodes]


@same
def test_transformed_nodes_keep_their_notes(torch):
    fx = _fx(torch)

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.l = torch.nn.Parameter(torch.ones(1)), torch.nn.Linear(1, 1)

        def forward(self, x):
            return self.l(x) + self.w
    traced = fx.symbolic_trace(M())
    for n in traced.graph.nodes:
        n.meta.update(mine=n.name, stack_trace="somewhere", nn_module_stack="self", custom={"a": 1})
    names = ("mine", "stack_trace", "nn_module_stack", "custom")
    return [(n.name, [n.meta.get(name) for name in names]) for n in fx.Transformer(traced).transform().graph.nodes]


@same
def test_copy_of_a_module_that_holds_itself(torch):
    import copy
    traced = _fx(torch).symbolic_trace(lambda x: x + 1)
    traced.meta["self"] = traced
    made = copy.deepcopy(traced)
    return made is made.meta["self"], made(1)


@same
def test_code_generators_with_older_methods(torch):
    fx = _fx(torch)

    class Listed(fx.graph.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, values){maybe_return_annotation}:\n    {', '.join(free_vars)} = values"

        def generate_output(self, output_args):
            return f"return list({output_args!r})"

        def process_inputs(self, *inputs):
            return inputs[0]

        def process_outputs(self, outputs):
            return list(outputs)
    traced = fx.symbolic_trace(lambda a, b: (a + b, a - b))
    traced.graph.set_codegen(Listed())
    traced.recompile()
    return traced.code, traced([1, 2]), fx.Interpreter(traced).run([1, 2])


@same
def test_arguments_that_show_themselves(torch):
    node = import_module(torch.__name__ + ".fx.node")

    class Own(Pair):
        def _custom_fx_repr_fn(self):
            return f"Own({node._format_arg(self.a)})"
    n = next(iter(_fx(torch).symbolic_trace(lambda x: x).graph.nodes))
    return node._format_arg([Own(n, 2), Pair(n, 2), slice(n, None)])


@same
def test_patterns_of_operators(torch):
    """Attributes match where both are tensors, and arguments however they are given, defaults too."""
    fx, aten = _fx(torch), torch.ops.aten
    matcher = import_module(torch.__name__ + ".fx.passes.utils.matcher_utils").SubgraphMatcher

    class M(torch.nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name = name
            self.register_parameter(name, torch.nn.Parameter(torch.ones(2, 2)))

        def forward(self, x):
            return aten.mm.default(x, getattr(self, self.name))

    def found(pattern, graph):
        return len(matcher(fx.symbolic_trace(pattern).graph).match(fx.symbolic_trace(graph).graph))
    return (found(M("a"), M("b")), found(lambda x, k, s: aten.max_pool2d_with_indices.default(x, k, s, padding=[0, 0]),
                                         lambda x: aten.max_pool2d_with_indices.default(x, [2, 2], stride=[2, 2])),
            found(lambda x, y: aten.add.Tensor(x, y, alpha=1), lambda x, y: aten.add.Tensor(x, y)),
            found(lambda x, y: aten.add.Tensor(x, y, alpha=2), lambda x, y: aten.add.Tensor(x, y)))
