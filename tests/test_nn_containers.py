"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""
from __future__ import annotations

from collections import OrderedDict

from nn_models import said
from same import same


@same
def test_sequential(torch):
    nn = torch.nn
    s = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Linear(2, 2), c=nn.Tanh()))
    plain = nn.Sequential(nn.ReLU(), nn.Tanh())
    plain.append(nn.Sigmoid()).insert(1, nn.ELU())
    plain[0] = nn.GELU()
    seen = [repr(plain), repr(plain[1:]), repr(plain * 2), repr(plain + plain[:1]), len(plain), repr(s[1:]), repr(s.b),
            s[-1] is s.c]
    del plain[1]
    plain += nn.Sequential(nn.SiLU())
    plain *= 2
    popped = plain.pop(0)
    del s[0]
    return [*seen, repr(plain), repr(popped), repr(s), plain(torch.ones(2)), said(lambda: plain[20]),
            said(lambda: plain["a"]),
            said(lambda: plain + 3).replace("torchlike", "torch"), said(lambda: plain * 0).replace("torchlike",
                                                                                                   "torch"),
            said(lambda: plain * "a").replace("torchlike", "torch"), said(plain.insert, 99, nn.ReLU()),
            said(nn.Sequential, 3),
            said(plain.append, 3), [type(m).__name__ for m in plain.extend([nn.Mish()])], list(plain.state_dict())]


@same
def test_module_list_and_dict(torch):
    nn = torch.nn
    items = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    items.append(nn.Linear(1, 1))
    items.extend([nn.ELU()]).insert(0, nn.GELU())
    items[1] = nn.SiLU()
    del items[2]
    more = items + [nn.Mish()]
    table = nn.ModuleDict([["x", nn.ReLU()], ["y", nn.Linear(1, 1)]])
    table.update({"z": nn.Tanh()})
    table["w"] = nn.ELU()
    popped = table.pop("x")
    del table["z"]
    return [repr(items), repr(more), repr(items[1:3]), len(items), repr(items.pop(-1)), "x" in table, "y" in table,
            list(table), list(table.keys()),
            [k for k, _ in table.items()], len(table), repr(table), repr(popped), said(lambda: items[9]),
            said(items.extend, 3), said(nn.ModuleList, [3]),
            said(table.update, 3), said(table.update, [("a",)]), said(table.update, [3]), said(lambda: table["no"]),
            said(items, 3), said(lambda: nn.ModuleDict({"a.b": nn.ReLU()})), list(items.state_dict()), table.clear(),
            len(table)]


@same
def test_parameter_list_and_dict(torch):
    nn = torch.nn
    items = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), 3])
    items.append(torch.ones(1))
    items[2] = torch.full((2,), 5.0)
    items += [torch.ones(3)]
    table = nn.ParameterDict({"a": torch.ones(1), "b": "text"})
    table["c"] = nn.Parameter(torch.zeros(2))
    merged = table | nn.ParameterDict({"d": torch.ones(2)})
    return [list(items.state_dict()), len(items), repr(items), [type(p).__name__ for p in items], repr(items[1:3]),
            said(lambda: items[9]),
            said(items.extend, torch.ones(1)), said(items), list(table), list(table.state_dict()), repr(merged),
            "a" in table, table.get("q", 4),
            [k for k, _ in table.items()], list(reversed(table)), table.setdefault("e", torch.ones(1)), table.pop("a"),
            table.popitem()[0], said(lambda: table["no"]), said(lambda: table[3]), repr(table.copy()),
            repr(table.fromkeys(["u"], torch.ones(1))), said(table, 3), len(table)]
