"""torch.fx: building and changing graphs, GraphModule, Interpreter and Transformer, patterns and passes: against real torch."""
import copy
import operator
import pickle
from importlib import import_module

from same import caught, error, same


def _fx(torch):
    return import_module(torch.__name__ + ".fx")


def _sub(torch, name):
    return import_module(f"{torch.__name__}.fx.{name}")


def _built(torch):
    g = _fx(torch).Graph()
    x, y = g.placeholder("x"), g.placeholder("y", type_expr=int, default_value=3)
    a = g.call_function(torch.add, (x, y), {"alpha": 2})
    b = g.call_method("relu", (a,))
    e = g.create_node("call_function", operator.add, (b, g.get_attr("p.q")), name="foo bar")
    o = g.output((e, [a], {"k": b, "s": slice(a, None)}))
    return g, x, y, a, b, e, o


@same
def test_build(torch):
    g, x, y, a, b, e, o = _built(torch)
    types = [type(v).__name__ for v in (a.args, a.kwargs, o.args[0], o.args[0][1], o.args[0][2])]

    def append():
        o.args[0][1].append(3)

    def put():
        a.kwargs["k"] = 3
    refused = [caught(append), caught(put), caught(g.erase_node, a), caught(g.create_node, "bad", "x"), caught(g.call_function, "x"),
               caught(g.placeholder, torch.add)]
    return (str(g), g.python_code("self").src, sorted(g.python_code("self").globals), types, refused, str(a.users), a.next.name, a.prev.name, len(g.nodes),
            str(list(reversed(g.nodes))),
            caught(g.find_nodes, op="call_function"), str(g.find_nodes(op="call_method")), str(g.find_nodes(op="call_function", target=operator.add)), a < b, b < a,
            str(g.output_node().all_input_nodes), a.format_node(), [n.is_impure() for n in g.nodes])


@same
def test_change(torch):
    g, x, y, a, b, e, o = _built(torch)
    seen = [str(a.replace_all_uses_with(x)), str(g)]
    o.replace_input_with(e, b)
    seen += [g.eliminate_dead_code(), str(g), caught(g.lint), str(x.users)]
    with g.inserting_after(x):
        s = g.call_function(torch.sin, (x,))
        c = g.call_function(torch.cos, (s,))
    seen += [str(list(g.nodes)), caught(g.lint)]
    s.append(c)
    g.lint()
    with g.inserting_before():
        g.call_function(torch.tan, (1,))
    with g.inserting_after():
        g.call_function(torch.exp, (2,))
    c.prepend(b)
    seen += [str(g), str(x.replace_all_uses_with(y, lambda user: user is s))]
    s.update_arg(0, x)
    s.update_kwarg("out", None)
    c.insert_arg(0, y)
    other = _fx(torch).Graph().placeholder("z")
    seen += [str(g), str(c.all_input_nodes), caught(c.prepend, other), caught(g.inserting_before, other), error(g.erase_node, other)]
    o.args = (y,)
    return [*seen, str(g), str(b.users)]


@same
def test_copies(torch):
    fx = _fx(torch)
    g, *_ = _built(torch)
    h, env = fx.Graph(), {}
    result = h.graph_copy(g, env)
    h.output(result)
    k, values = fx.Graph(), {}
    for n in g.nodes:
        values[n] = k.node_copy(n, values.__getitem__)
    mapped = fx.node.map_arg({"a": (next(iter(g.nodes)), [1])}, lambda n: n.name), fx.node.map_aggregate([1, (2, {"k": 3})], lambda x: x * 2)
    return str(h), str(env), str(k), str(copy.deepcopy(g)), str(mapped), type(mapped[1]).__name__, caught(fx.map_arg, 1, 2)


def _net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.drop = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout()
            self.seq, self.p = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Parameter(torch.ones(4))

        def forward(self, x):
            return self.seq(self.drop(torch.relu(self.bn(self.conv(x)))).mean((2, 3)) + self.p)
    return Net().eval()


@same
def test_graph_module(torch):
    fx, nn = _fx(torch), torch.nn
    gm = fx.symbolic_trace(_net(torch))
    conv = gm.graph.find_nodes(op="call_module", target="conv")[0]
    with gm.graph.inserting_after(conv):
        neg = gm.graph.call_function(torch.neg, (conv,))
    conv.replace_all_uses_with(neg, lambda user: user is not neg)
    gm.graph.lint()
    seen = [gm.recompile().src == gm.code, gm.code, gm.print_readable(print_output=False), gm.print_readable(print_output=False, colored=True)]
    seen += [gm.add_submodule("a.b.c", nn.ReLU()), gm.add_submodule("p.b", nn.ReLU()), str(gm), gm.delete_submodule("a.b.c"), gm.delete_submodule("zz.b")]
    gm.delete_all_unused_submodules()
    seen += [[n for n, _ in gm.named_modules()], caught(gm.graph.call_module, "nope")]
    x = torch.randn(1, 3, 4, 4)
    copies = [copy.deepcopy(gm), copy.copy(gm), pickle.loads(pickle.dumps(gm)), fx.GraphModule(gm, gm.graph, "Zoo")]
    seen += [(c.code == gm.code, str(c.graph) == str(gm.graph), c.graph is gm.graph, c.conv is gm.conv, c._get_name(), c.training) for c in copies]
    g = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU())).graph
    seen += [caught(fx.GraphModule, nn.Linear(2, 2), g), caught(fx.GraphModule, 3, g), caught(fx.GraphModule, {}, g),
             str(fx.GraphModule({"0": nn.Linear(2, 2), "1": nn.ReLU()}, g, "Made")), caught(setattr, gm, "graph", 3)]
    return seen, gm(x), copies[0](x), copies[2](x), sorted(gm.state_dict())


@same
def test_nested_readable(torch):
    fx, nn = _fx(torch), torch.nn

    class Keep(fx.Tracer):
        def is_leaf_module(self, m, name):
            return True
    inner = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    outer = nn.Sequential(inner, nn.ReLU())
    gm = fx.GraphModule(outer, Keep().trace(outer))
    nodes = list(gm.graph.nodes)
    nodes[1].meta["stack_trace"] = '  File "/a/b.py", line 3, in forward\n    y = f(x)\n'
    nodes[2].meta["val"] = torch.ones(2, 3)
    return gm.print_readable(print_output=False), gm.print_readable(print_output=False, include_stride=True, include_device=True)


@same
def test_interpreter_and_transformer(torch):
    fx, log = _fx(torch), []
    net = _net(torch)
    gm, x = fx.symbolic_trace(net), torch.randn(1, 3, 4, 4)

    class Seen(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            log.append((n.name, n.op, str(sorted(map(str, self.env)))))
            return result

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return torch.sigmoid(*args, **kwargs) if target is torch.relu else super().call_function(target, args, kwargs)

        def call_module(self, target, args, kwargs):
            return args[0] if target == "drop" else torch.neg(super().call_module(target, args, kwargs))
    new = Swap(gm).transform()
    words = []
    for args in ((), (torch.ones(2, 2),)):
        try:
            fx.Interpreter(gm).run(*args)
        except RuntimeError as failed:
            words.append(str(failed).split("\n\n")[-1])
    return (Seen(gm).run(x), log, new.code, new(x), words, fx.Interpreter(gm).boxed_run([x]), fx.Interpreter(gm, garbage_collect_values=False).run(x),
            fx.Interpreter(fx.symbolic_trace(lambda x, y=3: x + y)).run(4))


@same
def test_patterns(torch):
    fx = _fx(torch)

    def m(x, y):
        b = torch.relu(torch.add(x, y))
        c = torch.relu(torch.add(b, x))
        return c.sum(), torch.neg(torch.relu(torch.add(c, 1)))
    out = []
    for pattern, replacement in ((lambda a, b: torch.relu(torch.add(a, b)), lambda a, b: torch.sigmoid(a) * b), (lambda x: x.sum(), lambda x: x.mean()),
                                 (lambda x, y: torch.add(x, y), lambda x, y: x + y), (lambda x: x.nothing(), lambda x: x),
                                 (lambda x: torch.neg(torch.relu(x)), lambda x: x), (lambda x: torch.add(x, 1), lambda x: x - 1)):
        gm = fx.symbolic_trace(m)
        found = fx.replace_pattern(gm, pattern, replacement)
        out.append((gm.code, [(str(f.anchor), {str(k): str(v) for k, v in f.nodes_map.items()}) for f in found]))
    gm = fx.symbolic_trace(lambda x: torch.relu(torch.relu(torch.relu(x))))
    fx.replace_pattern(gm, lambda x: torch.relu(torch.relu(x)), lambda x: torch.relu(x))
    pair = fx.symbolic_trace(lambda x, y: (x + y, x - y))
    fx.replace_pattern(pair, lambda a, b: (a + b, a - b), lambda a, b: (torch.add(a, b), torch.sub(a, b)))
    filtered = fx.symbolic_trace(m)
    kept = _sub(torch, "subgraph_rewriter").replace_pattern_with_filters(filtered, lambda x, y: torch.add(x, y), lambda x, y: x + y,
                                                                       [lambda match, whole, p: match.placeholder_nodes[1] != 1])
    return out, gm.code, pair.code, filtered.code, [str(k.replacements) for k in kept], caught(fx.replace_pattern, pair, lambda a: a.add(1), lambda a, b: a)


@same
def test_shapes(torch):
    fx = _fx(torch)
    gm = fx.symbolic_trace(lambda x: (torch.split(x, 2), x.size(0), x.max(1), x.permute(0, 3, 1, 2), torch.max(x, 1).values))
    _sub(torch, "passes.shape_prop").ShapeProp(gm).propagate(torch.ones(4, 2, 2, 2))
    metas = [(n.name, str(n.meta.get("tensor_meta")), getattr(n.meta.get("type"), "__name__", None)) for n in gm.graph.nodes]
    return metas, gm.print_readable(print_output=False)


@same
def test_fuse(torch):
    opt = _sub(torch, "experimental.optimization")
    net, x = _net(torch), torch.randn(2, 3, 5, 5)
    net.bn.running_mean.uniform_()
    fused, bare = opt.fuse(net), opt.remove_dropout(net)
    return fused.code, bare.code, str(fused), fused(x), bare(x), net(x), caught(opt.fuse, _net(torch).train())


@same
def test_split(torch):
    split, net, x = _sub(torch, "passes.split_module").split_module, _net(torch), torch.randn(1, 3, 4, 4)
    gm, names = _fx(torch).symbolic_trace(net), {}
    parts = {"conv": 0, "bn": 0, "relu": 1, "drop": 1, "mean": 1}
    made = split(gm, net, lambda n: parts.get(n.name, 2), names)
    return (made.code, [(n, c.code) for n, c in made.named_children()], names, made(x), net(x),
            caught(split, gm, net, lambda n: int(n.op == "call_module")))


@same
def test_annotations(torch):
    tb = _sub(torch, "traceback")

    @tb.annotate_fn({"f": 1})
    def f():
        return dict(tb.current_meta["custom"])
    with tb.annotate({"a": 1}):
        with tb.annotate({"b": 2}):
            both = f()
        one = dict(tb.current_meta["custom"])
    return both, one, "custom" in tb.current_meta, tb.has_preserved_node_meta()
