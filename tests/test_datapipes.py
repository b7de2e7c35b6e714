"""torch.utils.data's pipes, beside real torch."""
import importlib
import operator
import pickle
import warnings

import pytest


def parts(torch):
    base = f"{torch.__name__}.utils.data"
    return [importlib.import_module(base + name) for name in ("", ".datapipes.iter", ".datapipes.map", ".graph_settings", ".graph")]


def plain(x):
    if hasattr(x, "tolist"):
        return x.tolist()
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x


def outcome(f):
    try:
        return plain(f())
    except Exception as error:
        return type(error).__name__, str(error).partition("\nThis exception")[0]


def even(x):
    return x % 2 == 0


def third(x):
    return x % 3


def some(x):
    return None if x % 4 == 0 else x % 2


def add(a, b):
    return a + b


def named(a, *, b):
    return a


STEPS = {
    "wrapper": lambda p, i, m: p, "map": lambda p, i, m: p.map(operator.neg), "filter": lambda p, i, m: p.filter(even),
    "batch": lambda p, i, m: p.batch(3), "batch, whole": lambda p, i, m: p.batch(3, drop_last=True), "batch of batches": lambda p, i, m: p.batch(2).batch(2),
    "unbatch": lambda p, i, m: p.batch(2).batch(2).unbatch(), "unbatch 2": lambda p, i, m: p.batch(2).batch(2).unbatch(2),
    "unbatch all": lambda p, i, m: p.batch(2).batch(2).unbatch(-1), "unbatch too far": lambda p, i, m: p.unbatch(), "unbatch -2": lambda p, i, m: p.unbatch(-2),
    "groupby": lambda p, i, m: p.groupby(third), "groupby sized": lambda p, i, m: p.groupby(third, group_size=2, keep_key=True),
    "groupby full": lambda p, i, m: p.groupby(third, buffer_size=4), "groupby poor": lambda p, i, m: p.groupby(third, buffer_size=4, group_size=4),
    "groupby dropped": lambda p, i, m: p.groupby(third, buffer_size=4, group_size=3, drop_remaining=True),
    "groupby guaranteed": lambda p, i, m: p.groupby(third, buffer_size=5, group_size=3, guaranteed_group_size=2),
    "groupby wrong": lambda p, i, m: p.groupby(third, group_size=0), "concat": lambda p, i, m: p.concat(i.IterableWrapper([7, 8])),
    "concat wrong": lambda p, i, m: i.Concater(), "concat wrong kind": lambda p, i, m: i.Concater([1]),
    "zip": lambda p, i, m: p.zip(i.IterableWrapper([7, 8])), "zip wrong": lambda p, i, m: p.zip([1]), "mux": lambda p, i, m: p.mux(i.IterableWrapper([7, 8])),
    "collate": lambda p, i, m: p.batch(2).collate(), "collate by": lambda p, i, m: p.batch(2).collate(collate_fn=sum),
    "sampler": lambda p, i, m: i.Sampler(p), "shuffle": lambda p, i, m: p.shuffle().set_seed(3), "shuffle little": lambda p, i, m: p.shuffle(buffer_size=3).set_seed(3),
    "shuffle off": lambda p, i, m: p.shuffle().set_shuffle(False), "shuffle drawn": lambda p, i, m: p.shuffle(), "shuffle wrong": lambda p, i, m: p.shuffle(buffer_size=0),
    "shuffle open": lambda p, i, m: p.batch(2).shuffle(unbatch_level=1).set_seed(1), "sharding": lambda p, i, m: p.sharding_filter(),
    "columns": lambda p, i, m: p.zip(i.IterableWrapper(range(10))).map(operator.neg, input_col=1),
    "columns in": lambda p, i, m: p.zip(i.IterableWrapper(range(10))).map(add, input_col=[0, 1]),
    "columns behind": lambda p, i, m: p.zip(i.IterableWrapper(range(10))).map(add, input_col=(0, 1), output_col=-1),
    "columns to": lambda p, i, m: p.zip(i.IterableWrapper(range(10))).map(operator.neg, input_col=0, output_col=[1]),
    "columns of dicts": lambda p, i, m: i.IterableWrapper([{"a": 1, "b": 2}]).map(add, input_col=["a", "b"], output_col="c"),
    "columns none": lambda p, i, m: p.map(add, output_col=1), "columns many": lambda p, i, m: p.map(operator.neg, input_col=0, output_col=[1, 2]),
    "map wrong": lambda p, i, m: p.map(add), "map by name": lambda p, i, m: p.map(named), "map no function": lambda p, i, m: p.map(3),
    "filter column": lambda p, i, m: p.zip(i.IterableWrapper(range(10))).filter(even, input_col=1), "filter wrong": lambda p, i, m: p.filter(third),
    "batch wrong": lambda p, i, m: p.batch(0), "no step": lambda p, i, m: p.nothing(),
    "fork": lambda p, i, m: i.Zipper(*p.fork(2)), "fork one": lambda p, i, m: p.fork(1), "fork none": lambda p, i, m: p.fork(0),
    "fork full": lambda p, i, m: i.Concater(*p.fork(2, buffer_size=3)), "fork wrong": lambda p, i, m: p.fork(2, copy="x"),
    "demux": lambda p, i, m: i.Concater(*p.demux(2, some, drop_none=True)), "demux none": lambda p, i, m: i.Concater(*p.demux(2, some)),
    "demux full": lambda p, i, m: i.Concater(*p.demux(3, third, buffer_size=2)), "demux wrong": lambda p, i, m: i.Concater(*p.demux(2, third)),
    "look-up": lambda p, i, m: m.SequenceWrapper(range(5)), "look-up map": lambda p, i, m: m.SequenceWrapper(range(5)).map(operator.neg),
    "look-up batch": lambda p, i, m: m.SequenceWrapper(range(5)).batch(2), "look-up batch whole": lambda p, i, m: m.SequenceWrapper(range(5)).batch(2, drop_last=True),
    "look-up concat": lambda p, i, m: m.SequenceWrapper(range(3)).concat(m.SequenceWrapper([7])),
    "look-up zip": lambda p, i, m: m.SequenceWrapper(range(3)).zip(m.SequenceWrapper([7])),
    "look-up shuffle": lambda p, i, m: m.SequenceWrapper(range(5)).shuffle().set_seed(2), "look-up wrong": lambda p, i, m: m.Zipper(p),
    "look-up off": lambda p, i, m: m.SequenceWrapper(range(5)).shuffle(indices=[3, 1]).set_shuffle(False),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps(subject, oracle, name):
    """Samples at two iterations, lengths, what is left after pickling, texts; errors."""
    def facts(torch):
        _, i, m, _, _ = parts(torch)
        torch.manual_seed(0)
        pipe = outcome(lambda: (STEPS[name](i.IterableWrapper(range(7)), i, m),))
        if not isinstance(pipe, list):
            return pipe
        pipe = pipe[0]
        seen = [outcome(lambda: list(pipe)), outcome(lambda: list(pipe)), outcome(lambda: len(pipe)), repr(pipe), str(pipe), type(pipe).__name__]
        again = pickle.loads(pickle.dumps(pipe))
        return [*seen, outcome(lambda: sorted(map(str, list(again)))), outcome(lambda: [type(x).__name__ for x in pipe][:1])]
    assert facts(subject) == facts(oracle)


def test_one_iterator_at_a_time(subject, oracle):
    """A new iterator ends the last one; children of a fork go together; counts and resets."""
    def facts(torch):
        data, i, _, _, _ = parts(torch)
        out, p = [], i.IterableWrapper(range(5))
        first = iter(p)
        out.append(next(first))
        second = iter(p)
        out += [next(second), outcome(lambda: next(first)), next(second), p._number_of_samples_yielded]

        class Counts(data.IterDataPipe):
            resets = 0

            def __init__(self):
                self.i = 0

            def __iter__(self):
                return self

            def __next__(self):
                self.i += 1
                if self.i > 3:
                    raise StopIteration
                return self.i

            def reset(self):
                self.i = 0
                Counts.resets += 1
        c = Counts()
        out += [list(c), list(c), Counts.resets, c._number_of_samples_yielded]
        a, b = i.IterableWrapper(range(4)).fork(2)
        x, y = iter(a), iter(b)
        out += [next(x), next(y), next(x)]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            z = iter(a)
        out += [str(w.message).split(".")[0] for w in seen]
        out += [next(z), outcome(lambda: next(y))[0], list(a), list(b), list(a)]
        c, d = i.IterableWrapper(range(6)).fork(2)
        left = iter(d)
        out += [next(left), list(c), list(c)]
        del left  # an iterator of an earlier run ends only now
        out += [list(d), list(c)]
        return out
    ours, theirs = facts(subject), facts(oracle)
    assert ours == theirs


def test_exceptions_say_where(subject, oracle):
    def facts(torch):
        _, i, _, _, _ = parts(torch)
        with pytest.raises(ZeroDivisionError) as error:
            list(i.IterableWrapper([1, 0]).map(divided).batch(2))
        with pytest.raises(KeyError) as other:
            list(i.IterableWrapper([{}]).map(operator.neg, input_col="a"))
        return str(error.value), str(other.value)
    assert facts(subject) == facts(oracle)


def divided(x):
    return 1 // x


def test_pipes_of_ones_own(subject, oracle):
    """Registered steps of both kinds, names taken, functions, hooks."""
    def facts(torch):
        data, i, m, _, _ = parts(torch)
        name = f"twice_{torch.__name__}"

        @data.functional_datapipe(name)
        class Twice(data.IterDataPipe):
            def __init__(self, source, times=2):
                self.source, self.times = source, times

            def __iter__(self):
                for x in self.source:
                    for _ in range(self.times):
                        yield x

        @data.functional_datapipe(name)
        class Half(data.MapDataPipe):
            def __init__(self, source):
                self.source = source

            def __getitem__(self, k):
                return self.source[2 * k]
        out = [list(getattr(i.IterableWrapper([1, 2]), name)(times=3)), getattr(m.SequenceWrapper("abc"), name)()[1], name in dir(i.IterableWrapper([])),
               isinstance(Twice([]), data.IterableDataset), isinstance(Half([]), data.Dataset)]
        out.append(outcome(lambda: data.functional_datapipe(name)(Twice))[0])
        data.IterDataPipe.register_function(name + "f", lambda pipe, x: (list(pipe), x))
        out.append(plain(getattr(i.IterableWrapper([1]), name + "f")(4)))
        hook = lambda state: {"hooked": True}  # noqa: E731
        data.IterDataPipe.set_getstate_hook(hook)
        try:
            out += [i.IterableWrapper([1]).__getstate__(), outcome(lambda: data.IterDataPipe.set_getstate_hook(hook))]
        finally:
            data.IterDataPipe.set_getstate_hook(None)

        @data.non_deterministic
        class Random(data.IterDataPipe):
            pass
        out.append(type(Random()).__name__)
        with data.guaranteed_datapipes_determinism():
            out.append(outcome(Random))
        return out
    assert facts(subject) == facts(oracle)


def test_graphs(subject, oracle):
    """What a pipe is made of; parts and shuffling of all."""
    def facts(torch):
        data, i, m, settings, graph = parts(torch)
        p = i.IterableWrapper(range(10)).shuffle().sharding_filter()
        q = p.zip(i.IterableWrapper(range(3))).batch(2)

        def shown(g):
            return [(type(x).__name__, shown(inner)) for x, inner in g.values()]
        out = [shown(graph.traverse_dps(q)), [type(x).__name__ for x in settings.get_all_graph_pipes(graph.traverse_dps(q))]]
        settings.apply_shuffle_settings(p, False)
        settings.apply_sharding(q, 3, 1)
        out += [list(p), len(p), p.num_of_instances, outcome(lambda: settings.apply_sharding(p, 2, 2)), outcome(lambda: settings.apply_sharding(p.sharding_filter(), 2, 1))]
        sharding = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.iter.sharding").SHARDING_PRIORITIES
        f = i.IterableWrapper(range(24)).sharding_filter()
        f.apply_sharding(2, 1, sharding.DISTRIBUTED)
        f.apply_sharding(3, 2, sharding.MULTIPROCESSING)
        out += [list(f), outcome(lambda: f.apply_sharding(2, 1)), outcome(lambda: graph.traverse_dps(3))[0]]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            out.append(type(settings.apply_shuffle_settings(i.IterableWrapper([1]), True)).__name__)
        return [*out, len(seen)]
    assert facts(subject) == facts(oracle)


def test_files(subject, oracle, tmp_path):
    """Lists, masks, opened files and what is in them."""
    for name in ("b.txt", "a.txt", "c.csv", "sub/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name * 2)
    root = str(tmp_path)

    def facts(torch):
        _, i, _, _, _ = parts(torch)
        lists = [list(i.FileLister(root, **given)) for given in ({}, {"masks": "*.txt"}, {"masks": ["*.csv", "b*"]}, {"recursive": True}, {"abspath": True})]
        named = i.FileLister([f"{root}/a.txt", f"{root}/sub"], length=7)
        files = list(i.FileOpener(i.FileLister(root, "*.txt")))
        read = [(path, f.read()) for path, f in files]
        texts = [repr(f).replace(torch.__name__, "torch") for _, f in files]
        files[0][1].close()
        pieces = list(i.FileOpener([f"{root}/c.csv"], mode="b").read_from_stream(4))
        errors = [outcome(lambda: i.FileOpener([], mode="w")), outcome(lambda: i.FileOpener([], mode="b", encoding="utf8")), outcome(lambda: len(i.FileLister(root))),
                  outcome(lambda: list(i.FileOpener([3])))]
        return lists, list(named), len(named), read, texts, files[0][1].closed, pieces, errors, list(i.IterableWrapper([root]).list_files())
    assert facts(subject) == facts(oracle)


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(subject, oracle, workers):
    """A loader divides pipes among its workers, seeds them, and turns shufflers on and off."""
    def facts(torch):
        data, i, m, _, _ = parts(torch)
        out = []
        for shuffle in (None, True, False):
            torch.manual_seed(4)
            pipe = i.IterableWrapper(range(12)).shuffle().sharding_filter().map(operator.neg)
            loader = data.DataLoader(pipe, batch_size=3, num_workers=workers, shuffle=shuffle)
            out.append([[plain(b) for b in loader] for _ in range(2)])
            out.append(len(loader))
        batches = data.DataLoader(i.IterableWrapper(range(5)).sharding_filter().batch(2).collate(), batch_size=None, num_workers=workers)
        out.append([plain(b) for b in batches])
        torch.manual_seed(5)
        looked = data.DataLoader(m.SequenceWrapper(range(6)).map(operator.neg), batch_size=2, shuffle=True, num_workers=workers)
        out.append([plain(b) for b in looked])
        if workers:
            torch.manual_seed(6)
            kept = data.DataLoader(i.IterableWrapper(range(8)).shuffle().sharding_filter(), num_workers=workers, persistent_workers=True)
            out.append([[plain(b) for b in kept] for _ in range(2)])
            del kept
        return out
    assert facts(subject) == facts(oracle)


def _two(a, b):
    return a, b


def test_helpers_of_files(oracle, subject, tmp_path):
    """datapipes.utils.common: names, streams, checks."""
    for name in ("a.txt", "b.jpg"):
        (tmp_path / name).write_text(name)

    class Stream:
        closed = False

        def read(self):
            return "ab"

        def close(self):
            type(self).closed = True

    def facts(torch):
        common = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.utils.common")
        Stream.closed = False
        stream = common.StreamWrapper(Stream())
        found = [[name in dir(stream) for name in ("read", "close", "nothing")], stream.read()]
        del stream
        found += [Stream.closed, sorted(common.get_file_pathnames_from_root(str(tmp_path), "*.txt")),
                  sorted(common.get_file_pathnames_from_root(str(tmp_path), ["*.txt", "*.jpg"], abspath=True)),
                  [(path, data.read()) for path, data in common.get_file_binaries_from_pathnames([str(tmp_path / "a.txt")], "b")],
                  outcome(lambda: list(common.get_file_binaries_from_pathnames([3], "b"))),
                  [common.match_masks("a.txt", masks) for masks in ("*.txt", ["*.j", "*.t"], "")]]
        for bad in (("a",), 3, (3, 3), ("a", "b")):
            found.append(outcome(lambda bad=bad: common.validate_pathname_binary_tuple(bad)))
        for columns in (None, 0, [0, 1], [0, 1, 2]):
            found.append(outcome(lambda columns=columns: common.validate_input_col(_two, columns)))
        return found
    assert facts(subject) == facts(oracle)
