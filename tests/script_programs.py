"""Sources of test_jit_script.py: functions and modules that both torches script, with arguments, and what PyTorch refuses."""

FUNCTIONS = {
    "arithmetic": ("""
def f(x, n: int, s: float):
    y = x * 2 + 1 - n / 4
    y = 1 - y
    y = 2 / (y + 3)
    z = n // 2 + n % 3
    return y ** 2 + z, n / 2, n * s, -n, 2 ** n, n - 1, s // 2, (n > 2) == (s < 1), x.sum() > 0, 3 > x, ~(x > 0)
""", ["x", 5, 0.5]),
    "branches": ("""
def f(x, n: int):
    if x.sum() > 0:
        y = x + n
    elif n > 3:
        y = x - n
        if n == 5:
            y = y * 2
    else:
        y = x
    return y
""", ["x", 5], ["-x", 5], ["-x", 4], ["-x", 0]),
    "early returns": ("""
def f(x, n: int):
    if n == 0:
        return x
    for i in range(n):
        if i == 2:
            return x * i
        if i > 5:
            raise ValueError("too many")
    while True:
        n += 1
        if n > 10:
            return x + n
""", ["x", 0], ["x", 1], ["x", 4]),
    "loops": ("""
def f(x, names: List[str], n: int):
    out = []
    for i in range(n):
        if i == 1:
            continue
        if i == 4:
            break
        out.append(x * i)
    total = 0
    i = 0
    while i < n and total < 100:
        total += i
        i += 1
    words = ""
    for k, w in enumerate(names):
        words = words + w + str(k)
    pairs = 0
    for a, b in zip(names, [1, 2, 3]):
        pairs += len(a) * b
    rows = torch.zeros(3)
    for row in x:
        rows = rows + row
    for k, (a, b) in enumerate(zip([1, 2], [3., 4.])):
        rows = rows + k * a * b
    return torch.stack(out), total, words, pairs, rows
""", ["x", ["a", "bcd"], 6]),
    "optional": ("""
def f(x, y: Optional[torch.Tensor] = None, n: Optional[int] = None):
    if y is not None and y.sum() > 0:
        x = x + y
    if n is None:
        n = 3
    z = x if y is None else x * y
    n = torch.jit._unwrap_optional(n)
    w: Optional[torch.Tensor] = None
    if n > 2:
        w = x + n
    if w is not None:
        return z + w
    return z
""", ["x"], ["x", "x"], ["x", "-x", 1], ["x", None, 7]),
    "assertions": ("""
def f(x, y: Optional[torch.Tensor]):
    assert y is not None, "y must be there"
    assert x.dim() == 2
    return x + y
""", ["x", "x"]),
    "collections": ("""
def f(x, d: Dict[str, int], l: List[int]) -> Tuple[Dict[str, torch.Tensor], List[int], List[float], Tuple[int, str], int, bool, List[str], Dict[int, List[int]]]:
    out = {"x": x, "y": x + 1}
    out["z"] = out["x"] * d["a"]
    l = l + [1, 2]
    l.extend([5])
    l[0] = 9
    l[1] += 3
    l.insert(1, 7)
    n = l.pop()
    floats = [float(i) / 2 for i in l]
    squares = {i: [i, i * i] for i in l[:2]}
    t = (n, "q")
    a, b = t
    d["new"] = a
    keys: List[str] = []
    for k in d.keys():
        keys.append(k)
    for k, v in d.items():
        n += v
    m = {"k": 1}
    m.update(d)
    return out, sorted(l), floats, (a, b), n + len(m) + min(l) + max(3, n) + sum(l), 9 in l and "a" in d and not ("q" in d), sorted(keys), squares
""", ["x", {"a": 2, "b": 3}, [4, 5, 6]]),
    "strings": ("""
def f(x, s: str, n: int):
    a = f"{s}:{n} items"
    b = "{}-{}".format(s, n)
    c = "%s has %d" % (s, n)
    parts = "a,b,c".split(",")
    return a, b, c, s.upper() + "é", ", ".join(parts), s == "abc", s[0] + s[1:], "b" in s, s.startswith("a"), s.replace("b", "_"), len(s), str(n) + str(1.5)
""", ["x", "abc", 3]),
    "subscripts": ("""
def f(x, i: int, mask):
    y = x[0]
    z = x[i, 1:], x[..., -1], x[:, None, ::2], x[None], x[mask], x[:, :i], x[-1][0], x[torch.tensor([0, 1]), 1], x[[1, 0]]
    w = x.clone()
    w[0] = 5.0
    w[:, 1] = y[1]
    w[1, 2] += 3
    w[mask] = 0
    return y, z, w
""", ["x", 1, "x>0"]),
    "tensor attributes": ("""
def f(x):
    b, c = x.shape
    n = x.size(0) * x.size()[1]
    y = torch.zeros(b, c, dtype=x.dtype, device=x.device) + x.ndim
    z = torch.ones([2, 3], dtype=torch.float64).to(x)
    i = torch.arange(b, device=x.device)
    q = torch.full((b,), 2.5)
    if x.dtype == torch.float32 and not x.requires_grad:
        y = y + 1
    v, k = x.max(dim=1)
    m = x.max(1).values + x.sort(0)[0].sum()
    return y, z.dtype == x.dtype, i, q, n, v, k, m, x.long(), x.double(), x.to(torch.int32), x.float().T, x.view(-1), x.reshape(c, b), x.permute(1, 0), x.t().contiguous(), \\
        x.expand(2, -1, -1), x.new_zeros(3), x.item() if x.numel() == 1 else 0.0, x.mean(dim=(0, 1)), x.flatten(), x.unsqueeze(-1).squeeze(-1), x.dim()
""", ["x"]),
    "operators": ("""
def f(x, y):
    a = torch.cat([x, y], dim=0)
    b = torch.stack((x, y), 1)
    c = torch.where(x > 0, x, torch.zeros_like(x))
    d = torch.matmul(x, y.transpose(0, 1)) @ x
    e = torch.einsum("ij,kj->ik", x, y)
    g = torch.clamp(x, min=-0.5, max=0.5) + torch.clamp(x, 0)
    h, i = torch.topk(x, 2, dim=-1)
    j = torch.sum(x, dim=1, keepdim=True) + torch.mean(x) + torch.linspace(0, 1, 3)
    k = x.masked_fill(x > 0, -1e9).softmax(-1)
    l = torch.split(x, 1, dim=1)
    m = x.chunk(3, dim=1)[0]
    n = torch.norm(x, dim=1) + torch.linalg.norm(x, dim=1)
    return a, b, c, d, e, g, h, i, j, k, l, m, n, torch.tensor([1.0, 2.0]), torch.tensor(3), torch.cumsum(x, 0), x.argmax(-1), torch.roll(x, 1, 0), torch.bmm(b, b.transpose(1, 2))
""", ["x", "-x"]),
    "functional": ("""
def f(x, w):
    y = F.linear(x, w)
    y = F.relu(y) + F.gelu(y) + F.silu(y) + F.softplus(y) + F.elu(y, 0.5) + F.leaky_relu(y, 0.1) + F.hardtanh(y)
    z = F.softmax(y, dim=-1) + F.log_softmax(y, -1) + F.dropout(y, 0.5, False) + torch.sigmoid(y) + F.normalize(y, dim=1)
    i = x[None, None]
    p = F.max_pool2d(i, 2, stride=1) + F.avg_pool2d(i, 2, 1)
    q = F.pad(i, (1, 1, 0, 1)), F.adaptive_avg_pool2d(i, (1, 1)), F.interpolate(i, scale_factor=2.0, mode="nearest"), F.conv2d(i, i, padding=1)
    return y, z, p, q, F.layer_norm(x, (3,)), F.one_hot(torch.tensor([0, 1]), 3), F.mse_loss(x, w[:2] * 0), F.cross_entropy(x, torch.tensor([0, 2]))
""", ["x", "w"]),
    "calls": ("""
def scale(x, by: float = 2.0, *, add: int):
    return x * by + add


def both(x):
    return scale(x, add=1), scale(x, 3.0, add=2)


def f(x):
    a, b = both(x)
    xs = (a, b)
    return torch.add(*xs), math.sqrt(2.0) + math.floor(2.5) + math.pi, abs(-3), round(2.6), int(3.7), float(2), bool(1), max(1, 2.5), torch.jit.annotate(List[int], [])
""", ["x"]),
    "types": ("""
def f(x, a: Union[int, str], o: Any):
    n = 0
    if isinstance(a, int):
        n = a + 1
    else:
        n = len(a)
    if isinstance(x, torch.Tensor) and not torch.jit.is_scripting():
        n = 100
    if isinstance(o, str):
        n = n + len(o)
    return n
""", ["x", 3, "ab"], ["x", "abc", 2]),
    "unions": ("""
def f(x, p: Union[int, List[int]], s: BroadcastingList2[int]):
    if isinstance(p, list):
        if len(p) not in [1, 2]:
            raise ValueError("one or two")
    if isinstance(p, int):
        q = [p, p]
    else:
        q = p
    a, b = _pair(s)
    return F.avg_pool2d(x[None], _pair(q), _pair(1)), q, a + b
""", ["x", 2, [1, 1]], ["x", [1, 2], [3, 4]]),
    "type comments": ("""
def f(x, n, t):
    # type: (Tensor, int, Optional[Tensor]) -> Tuple[Tensor, int]
    if t is not None:
        x = x + t
    return x, n + 1
""", ["x", 2, None], ["x", 2, "x"]),
    "in place": ("""
def f(x, n: int):
    y = x.clone()
    y += 1
    y *= n
    y -= x
    y /= 2
    y.add_(1).mul_(2)
    y[0] *= 3
    n += 2
    n *= 3
    n -= 1
    l = [1]
    l += [2, n]
    return y, n, l
""", ["x", 2]),
    "tuples": ("""
def pair(x) -> Tuple[torch.Tensor, Tuple[int, float]]:
    return x + 1, (1, 2.0)


def f(x):
    a, (b, c) = pair(x)
    t = (1, 2, 3)
    s = t[1:] + t[:1]
    n = 0
    for i in t:
        n += i
    x, a = a, x
    return a, x, b, c, s, n, t[-1], len(t), t == (1, 2, 3), 2 in t
""", ["x"]),
    "truth as a number": ("""
def f(x, n: bool):
    return x * n, 1 + n, x.masked_fill(x > 0, n), torch.full((2,), n), max(1, 2.5), min(3, 1.5), max(4, 1.5)
""", ["x", True]),
    "numbers of tensors": ("""
def f(x, n: int) -> Tuple[int, float, int]:
    i = torch.tensor([n, 2]).max().item()
    return i, x.sum(), min(i, 3) if n > 100 else n
""", ["x", 5]),
    "nested lists": ("""
def f(x, rows: List[List[float]], pairs: List[Tuple[int, str]]):
    out: List[torch.Tensor] = []
    for row in rows:
        out.append(torch.tensor(row))
    best = -1
    names: Dict[str, List[int]] = {}
    for n, s in pairs:
        if s not in names:
            names[s] = torch.jit.annotate(List[int], [])
        names[s].append(n)
        best = max(best, n)
    return torch.stack(out), best, names, x.tolist() if False else 1
""", ["x", [[1.0, 2.0], [3.0, 4.0]], [(1, "a"), (5, "b"), (2, "a")]]),
    "comprehensions": ("""
def f(x, l: List[int]):
    a = [i * 2 for i in l]
    b = [x * i for i in range(3)]
    c = {str(i): i for i in l}
    d = [p + q for p, q in zip(l, a)]
    e = [row.sum() for row in x]
    return a, b, c, d, e, sum(i * 2 for i in l)
""", ["x", [1, 2, 3]]),
    "without gradients": ("""
def f(x, n: int):
    with torch.no_grad():
        y = x * 2
        if n > 1:
            return y, torch.is_grad_enabled()
    return y + 1, torch.is_grad_enabled()
""", ["x", 1], ["x", 2]),
    "named results": ("""
def f(x):
    u = torch.unique(x > 0)
    q = x.std(), x.var(1), torch.std_mean(x), x.min(0).indices, torch.aminmax(x), x.any(), x.all(1), x.prod(), x.norm(), x.abs().sqrt().log1p()
    return u, q
""", ["x"]),
    "calls that change something": ("""
def pair(l: List[int]) -> Tuple[int, int]:
    l.append(1)
    return len(l), 2


def f(x):
    l = [0]
    n = 0
    for i in pair(l):
        n += i
    for i, k in zip(pair(l), pair(l)):
        n += i * k
    p = pair(l)
    return n, [i * 2 for i in p], 5 in p, pair(l)[0], torch.full(pair(l), 1.0), len(l)
""", ["x"]),
    "variables that loops change": ("""
def f(x, n: int, old: Optional[List[int]] = None):
    i = 0
    while i < 3:
        i += 1
    k = 2
    for j in range(n):
        if k == 2:
            x = x + 1
        k = 3
    if old is None:
        old = 2, 3
    flag = True
    while flag:
        flag = i < 2
        i += 1
    return x, i, k, old[0]
""", ["x", 3]),
    "shadows": ("""
def f(x, input: int, len: int = 2, inside: bool = False):
    if not inside and input not in [7]:
        x = x + 1
    ops = input + len
    range_ = ops
    annotate = [x]
    print = 3
    return ops + range_ + print, annotate
""", ["x", 3]),
}

MODULES = {
    "resnet": ("""
class Block(nn.Module):
    expansion: Final[int] = 1

    def __init__(self, inside, out, stride=1):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = None if stride == 1 else nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.relu, self.maxpool = nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        self.layer1, self.layer2 = nn.Sequential(Block(4, 4), Block(4, 4)), nn.Sequential(Block(4, 8, 2))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 5)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)
""", ["image"]),
    "containers": ("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.norms = nn.ModuleList(nn.LayerNorm(3) for _ in range(3))
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Sequential(nn.Linear(3, 4), nn.Tanh())})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(2)])

    def forward(self, x) -> Dict[str, torch.Tensor]:
        for i, layer in enumerate(self.layers):
            x = x + layer(x) * i
        for layer, norm in zip(self.layers, self.norms):
            x = norm(F.relu(layer(x)))
        for layer in self.layers[1:]:
            x = layer(x)
        for scale in self.scales:
            x = x + scale
        out: Dict[str, torch.Tensor] = {}
        for name, head in self.heads.items():
            out[name] = head(x)
        out["last"] = self.layers[-1](x) + self.heads["a"](x).sum() + len(self.layers)
        return out
""", ["x"]),
    "attributes": ("""
class M(nn.Module):
    __constants__ = ["width", "sizes"]
    names: List[str]
    table: Dict[str, int]
    cache: Optional[torch.Tensor]
    depth: Final[int]

    def __init__(self):
        super().__init__()
        self.width, self.depth, self.sizes, self.scale, self.flag, self.word = 3, 2, [1, 2], 0.5, True, "é\\n"
        self.names, self.table, self.cache, self.pair, self.act, self.nothing, self.kind = ["a", "b"], {}, None, (1, 2.5), torch.tanh, None, torch.float64
        self.count = 0
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("hidden", torch.ones(2), persistent=False)
        self.register_parameter("bias", None)
        self.weight = nn.Parameter(torch.ones(3), requires_grad=False)

    def helper(self, x, k: int = 2):
        self.count += k
        return x * self.scale

    def forward(self, x):
        self.seen += 1
        self.cache = x
        if self.bias is not None:
            x = x + self.bias
        if self.flag:
            x = self.act(x)
        if self.depth > 1 and self.nothing is None:
            x = self.helper(x, k=3)
        for s in self.sizes:
            x = x * s
        self.table["n"] = self.count
        if self.training:
            x = x + 1
        cache = self.cache
        assert cache is not None
        return x * self.weight + self.pair[1], self.names, self.word, self.width, len(self.table), cache.to(self.kind)

    @torch.jit.export
    def other(self, x: torch.Tensor, k: int = 2) -> torch.Tensor:
        return self.helper(x) * k

    @torch.jit.unused
    def not_there(self, x):
        return [y for y in x if y]

    @torch.jit.ignore
    def in_python(self, x):
        import os
        return os.getcwd()

    @property
    def twice(self) -> int:
        return self.width * 2
""", ["x"]),
    "lazily": ("""
class M(nn.Module):
    def __init__(self, use=False):
        super().__init__()
        self.use = use
        self.gate = nn.Linear(3, 3) if use else None
        self.fc = nn.Linear(3, 3)

    def forward(self, x, mask: Optional[Tensor] = None):
        if self.gate is not None:
            x = x * torch.sigmoid(self.gate(x))
        if torch.jit.is_scripting():
            x = x * 2
        else:
            x = self.python_only(x)
        if hasattr(self, "extra"):
            x = self.extra(x)
        x = self.fc(x)
        if mask is not None:
            x = x.masked_fill(mask, float("-inf"))
        return x.softmax(-1)

    @torch.jit.unused
    def python_only(self, x):
        return x * 2
""", ["x"], ["x", "x>0"]),
    "tagger": ("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.out = nn.Embedding(5, 4), nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), nn.Linear(6, 2)
        self.gru = nn.GRU(4, 3)

    def forward(self, ids, lengths, hidden: Optional[Tuple[Tensor, Tensor]] = None):
        x = self.embed(ids)
        out, (h, c) = self.lstm(x, hidden)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        short, _ = self.lstm(packed)
        padded, found = nn.utils.rnn.pad_packed_sequence(short, batch_first=True)
        g, last = self.gru(x.transpose(0, 1))
        return F.log_softmax(self.out(out), dim=-1), h, c, self.out(padded), found, g, last
""", ["ids", "lengths"], ["ids", "lengths", "state"]),
    "transformer": ("""
class Positions(nn.Module):
    def __init__(self, d: int, most: int = 10):
        super().__init__()
        self.dropout = nn.Dropout(0.0)
        self.register_buffer("pe", torch.linspace(0, 1, most * d).reshape(most, 1, d))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[:x.size(0)]
        return self.dropout(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = Positions(4)
        layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoderLayer(4, 2, 8, 0.0)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x, padding: Optional[Tensor] = None):
        y = self.encoder(self.positions(x), src_key_padding_mask=padding)
        mask = torch.triu(torch.ones(x.size(0), x.size(0), dtype=torch.bool), diagonal=1)
        z = self.encoder(x, mask)
        a, w = self.attention(x, y, y, need_weights=True)
        return y, z, self.decoder(x, y, tgt_mask=mask), a, w
""", ["sequence"], ["sequence", "padding"]),
    "named tuples": ("""
class Output(NamedTuple):
    logits: torch.Tensor
    loss: Optional[torch.Tensor]
    count: int = 3


class M(nn.Module):
    def helper(self, x) -> Output:
        return Output(x, None)

    def forward(self, x):
        made = self.helper(x)
        a, b, n = made
        last = Output(logits=made.logits + 1, loss=a.sum(), count=n + made.count)
        loss = last.loss
        assert loss is not None
        return last.logits * loss, last.count, len(made), made[2]
""", ["x"]),
    "overloads": ("""
class Layer(nn.Module):
    @torch.jit._overload_method
    def forward(self, x: List[Tensor]) -> Tensor:
        pass

    @torch.jit._overload_method
    def forward(self, x: Tensor) -> Tensor:
        pass

    def forward(self, x):
        if isinstance(x, Tensor):
            x = [x]
        return torch.cat(x, 1)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x):
        torch._assert(x.dim() == 2, "two")
        return self.layer(x), self.layer([x, x + 1])
""", ["x"]),
    "enumerations": ("""
class Color(Enum):
    RED = "r"
    BLUE = "b"


class M(nn.Module):
    kind: Color

    def __init__(self):
        super().__init__()
        self.kind, self.other, self.word, self.layer = Color.RED, Color.BLUE, "avg", nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def pick(self, x, c: Color = Color.BLUE):
        return x + 1 if c == Color.BLUE else x

    def forward(self, x):
        if self.kind != Color.RED:
            x = x + 1
        if self.other == Color.BLUE and self.word:
            x = self.pick(x) * 2
        for part in self.layer.children():
            x = part(x)
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        return x.sum(1).view(shape), self.kind.value, self.other.name, shape
""", ["x"]),
    "parts of modules": ("""
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Tanh()
        self.register_buffer("step", torch.full((3,), 2.0))

    @torch.jit.export
    def moved(self, x, by: float = 2.0):
        return x + by

    def forward(self, x):
        return self.first(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.more = Part(), nn.ModuleList([Part(), nn.Tanh()])

    def forward(self, x):
        names = ""
        for m in self.modules():
            if hasattr(m, "moved"):
                x = m.moved(x)
        for name, m in self.named_modules():
            names += name + ";"
            if hasattr(m, "moved"):
                for buffer, value in m.named_buffers():
                    x, names = x * value, names + buffer + " "
        return x, names
""", ["x"]),
    "functions of modules": ("""
@torch.jit.script
def double(x, by: int = 2):
    return x * by


def shifted(x):
    return double(x) + 1


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.other, self.third = double, shifted, F.relu

    def forward(self, x):
        return self.act(x, 3), self.other(x), self.third(x), double(x)
""", ["x"]),
    "shared": ("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 3)
        self.decoder = self.encoder
        self.out = nn.Linear(3, 3)
        self.out.weight = self.encoder.weight

    def forward(self, x):
        return self.out(self.decoder(self.encoder(x)))
""", ["x"]),
}

LAYERS = ["Linear(3, 2)", "Identity()", "LayerNorm(3)", "BatchNorm1d(3)", "ReLU6()", "GELU('tanh')", "Hardswish()", "PReLU()", "Softmax(-1)", "LogSoftmax(1)",
          "Dropout(0.0)", "Flatten(0)", "Softplus(2, 10)", "Threshold(0.1, 20)", "Tanhshrink()", "CELU(0.5)", "LogSigmoid()", "GLU(0)", "LSTMCell(3, 2)",
          "GRUCell(3, 2)", "RNNCell(3, 2)", "LSTM(3, 2)", "Sequential(nn.Linear(3, 4), nn.SiLU())"]
IMAGE_LAYERS = ["GroupNorm(1, 3)", "Conv2d(3, 4, 3, 2, 1, 2)", "Conv2d(3, 6, 3, padding='same', groups=3)",
                "Conv2d(3, 4, 3, padding=1, padding_mode='reflect', bias=False)", "BatchNorm2d(3, affine=False)", "BatchNorm2d(3, momentum=None)",
                "BatchNorm2d(3, track_running_stats=False)", "MaxPool2d(3, 2, 1)", "AvgPool2d(2, count_include_pad=False)", "AdaptiveAvgPool2d(1)",
                "AdaptiveMaxPool2d((2, 3))", "Upsample(scale_factor=2)", "Upsample(size=(5, 6), mode='bilinear', align_corners=False)", "ZeroPad2d((1, 2, 0, 1))",
                "ReflectionPad2d(1)", "Dropout2d(0.0)", "InstanceNorm2d(3, affine=True)", "ConvTranspose2d(3, 2, 3, 2, 1, 1)", "AdaptiveAvgPool2d((None, 2))",
                "CircularPad2d(1)", "MaxPool2d(2, return_indices=True)", "LPPool2d(2.0, 3, 2)", "PixelUnshuffle(2)", "Unfold((2, 2))", "LocalResponseNorm(2)",
                "ConstantPad2d(1, 2)", "Softmax2d()", "Conv2d(3, 4, (3, 1), padding=(1, 0))"]

ERRORS = {
    "varargs": """
def f(*xs):
    return xs[0]
""",
    "keywords": """
def f(x, **more):
    return x
""",
    "a lambda": """
def f(x):
    g = lambda y: y + 1
    return g(x)
""",
    "try": """
def f(x):
    try:
        return x
    except ValueError:
        return x + 1
""",
    "a nested function": """
def f(x):
    def g(y):
        return y
    return g(x)
""",
    "a changed type": """
def f(x, n: int):
    y = 1
    if n > 2:
        y = "a"
    return y
""",
    "types of two branches": """
def f(x, n: int):
    if n > 2:
        y = "a"
    else:
        y = 2
    return y
""",
    "an undefined branch": """
def f(x, n: int):
    if n > 2:
        y = x
    return y
""",
    "a sum with a string": """
def f(x):
    return x + "a"
""",
    "an unknown name": """
def f(x):
    return x + not_there
""",
    "an unknown method": """
def f(x):
    return x.not_there()
""",
    "an optional value": """
def f(x, y: Optional[Tensor]):
    return x + y
""",
    "a wrong argument": """
def g(x, n: int):
    return x + n


def f(x):
    return g(x, "a")
""",
    "a wrong return": """
def f(x) -> int:
    return x.size()
""",
    "two returns": """
def f(x, n: int):
    if n > 1:
        return n
    return "a"
""",
    "recursion": """
def f(x, n: int) -> Tensor:
    return x if n == 0 else f(x, n - 1)
""",
    "a condition in a comprehension": """
def f(x, l: List[int]):
    return [i for i in l if i > 1]
""",
    "an import": """
def f(x):
    import os
    return x
""",
    "a loop's variable afterwards": """
def f(x, n: int):
    for i in range(n):
        y = x + i
    return y
""",
    "else of a loop": """
def f(x, n: int):
    for i in range(n):
        x = x + i
    else:
        x = x + 1
    return x
""",
    "a global number": """
k = 3


def f(x):
    return x + k
""",
    "numpy": """
import os


def f(x):
    return os.getcwd()
""",
    "a list of the wrong type": """
def f(x):
    l = []
    l.append(1)
    return l
""",
    "an annotation of nothing": """
def f(x, y: "NotThere"):
    return x
""",
    "a missing argument": """
def f(x):
    return torch.cat()
""",
    "a walrus": """
def f(x):
    if (y := x.sum()) > 0:
        return y
    return x
""",
    "a set": """
def f(x):
    s = {1, 2}
    return x
""",
    "an unpacking of another size": """
def f(x):
    a, b, c = (1, 2)
    return a
""",
}
