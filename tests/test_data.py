"""utils.data against real torch: the same code runs under both, and values, warnings and errors must be equal."""
import collections
import itertools
import random
import warnings

import numpy as np
import pytest
import torch as real

import torchlike as ours

Point = collections.namedtuple("Point", "x y")


def plain(x):
    """Tensors of either library as tuples that compare."""
    if isinstance(x, (real.Tensor, ours.Tensor)):
        return "tensor", str(x.dtype), tuple(x.shape), x.tolist()
    if isinstance(x, np.ndarray):
        return "array", str(x.dtype), x.shape, x.tolist()
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x).__name__, *map(plain, x)
    if isinstance(x, collections.abc.Mapping):
        return type(x).__name__, {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple, collections.deque)):
        return type(x).__name__, [plain(v) for v in x]
    return x


def outcome(case, torch):
    """What a case gives under one library: values or the error, warnings, and the default generator's next numbers."""
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for words in (r"os\.fork\(\) was called", r".*use of fork\(\) may lead to deadlocks"):  # by JAX and Python 3.12, of real torch's forks
            warnings.filterwarnings("ignore", message=words)
        try:
            result = plain(case(torch))
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [(w.category.__name__, str(w.message)) for w in caught], torch.rand(2).tolist()


def same(case):
    assert outcome(case, ours) == outcome(case, real)


class Numbers:
    """A data set of 0 to n-1, without inheriting from either library."""

    def __init__(self, n=10, get=lambda i: i):
        self.n, self.get = n, get

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.get(i)


class NoLength:
    def __getitem__(self, i):
        return i

    def __repr__(self):
        return "NoLength"


def stream(torch, n=10, length=None):
    """An iterable data set of 0 to n-1 that says it has `length` samples."""
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

        def __repr__(self):
            return "Stream"

    if length is not None:
        Stream.__len__ = lambda self: length
    return Stream()


def loader(**options):
    return lambda torch: torch.utils.data.DataLoader(Numbers(), **options)


def streamed(**options):
    return lambda torch: torch.utils.data.DataLoader(stream(torch), **options)


def assign(name, **options):
    return lambda torch: setattr(torch.utils.data.DataLoader(Numbers(), **options), name, None)


BAD = {
    "num_workers": loader(num_workers=-1),
    "num_workers_type": loader(num_workers="a"),
    "timeout": loader(timeout=-1),
    "prefetch_without_workers": loader(prefetch_factor=2),
    "prefetch_negative": loader(num_workers=1, prefetch_factor=-1),
    "persistent_without_workers": loader(persistent_workers=True),
    "shuffle_and_sampler": loader(shuffle=True, sampler=[1]),
    "batch_sampler_and_size": loader(batch_sampler=[[1]], batch_size=2),
    "batch_sampler_and_shuffle": loader(batch_sampler=[[1]], shuffle=True),
    "batch_sampler_and_sampler": loader(batch_sampler=[[1]], sampler=[1]),
    "batch_sampler_and_drop_last": loader(batch_sampler=[[1]], drop_last=True),
    "drop_last_without_batches": loader(batch_size=None, drop_last=True),
    "batch_size_zero": loader(batch_size=0),
    "batch_size_float": loader(batch_size=2.5),
    "batch_size_bool": loader(batch_size=True),
    "drop_last_type": loader(drop_last=1),
    "iterable_shuffle": streamed(shuffle=True),
    "iterable_sampler": streamed(sampler=[1]),
    "iterable_batch_sampler": streamed(batch_sampler=[[1]]),
    "context_without_workers": loader(multiprocessing_context="fork"),
    "context_unknown": loader(num_workers=1, multiprocessing_context="thread"),
    "context_type": loader(num_workers=1, multiprocessing_context=3),
    "set_batch_size": assign("batch_size"),
    "set_sampler": assign("sampler"),
    "set_batch_sampler": assign("batch_sampler"),
    "set_drop_last": assign("drop_last"),
    "set_dataset": assign("dataset"),
    "set_persistent_workers": assign("persistent_workers"),
    "timeout_without_workers": lambda torch: iter(torch.utils.data.DataLoader(Numbers(), timeout=3)),
    "no_length": lambda torch: next(iter(torch.utils.data.DataLoader(NoLength()))),
    "no_length_shuffle": lambda torch: torch.utils.data.DataLoader(NoLength(), shuffle=True),
    "empty_shuffle": lambda torch: torch.utils.data.DataLoader([], shuffle=True),
    "dataset_getitem": lambda torch: torch.utils.data.Dataset()[0],
    "dataset_len": lambda torch: len(torch.utils.data.Dataset()),
    "tensor_sizes": lambda torch: torch.utils.data.TensorDataset(torch.zeros(2), torch.zeros(3)),
    "concat_empty": lambda torch: torch.utils.data.ConcatDataset([]),
    "concat_iterable": lambda torch: torch.utils.data.ConcatDataset([stream(torch)]),
    "concat_index": lambda torch: torch.utils.data.ConcatDataset([[1, 2]])[-3],
    "chain_map": lambda torch: list(torch.utils.data.ChainDataset([Numbers()])),
    "stack_both": lambda torch: torch.utils.data.StackDataset(Numbers(), a=Numbers()),
    "stack_none": lambda torch: torch.utils.data.StackDataset(),
    "stack_sizes": lambda torch: torch.utils.data.StackDataset(a=Numbers(2), b=Numbers(3)),
    "split_sum": lambda torch: torch.utils.data.random_split(Numbers(), [3, 3]),
    "split_fraction": lambda torch: torch.utils.data.random_split(Numbers(), [-0.5, 0.7, 0.8]),
    "random_replacement": lambda torch: torch.utils.data.RandomSampler(Numbers(), replacement=3),
    "random_samples": lambda torch: torch.utils.data.RandomSampler(Numbers(), num_samples=0),
    "random_samples_type": lambda torch: torch.utils.data.RandomSampler(Numbers(), num_samples=2.5),
    "sampler_argument": lambda torch: torch.utils.data.Sampler(Numbers()),
    "sampler_iter": lambda torch: iter(torch.utils.data.Sampler()),
    "batch_sampler_size": lambda torch: torch.utils.data.BatchSampler([1], 0, False),
    "batch_sampler_drop": lambda torch: torch.utils.data.BatchSampler([1], 1, 1),
    "weighted_samples": lambda torch: torch.utils.data.WeightedRandomSampler([1.0], 0),
    "weighted_replacement": lambda torch: torch.utils.data.WeightedRandomSampler([1.0], 1, 1),
    "weighted_shape": lambda torch: torch.utils.data.WeightedRandomSampler([[1.0]], 1),
    "weighted_too_many": lambda torch: list(torch.utils.data.WeightedRandomSampler([0.1, 0.9], 3, False)),
    "distributed_rank": lambda torch: torch.utils.data.DistributedSampler(Numbers(), 2, 2),
    "collate_object": lambda torch: torch.utils.data.default_collate([object()]),
    "collate_none": lambda torch: torch.utils.data.default_collate([None]),
    "collate_ragged": lambda torch: torch.utils.data.default_collate([[1, 2], [1]]),
    "collate_shapes": lambda torch: torch.utils.data.default_collate([torch.zeros(2), torch.zeros(3)]),
    "collate_arrays": lambda torch: torch.utils.data.default_collate([np.zeros(2), np.zeros(3)]),
    "collate_text_array": lambda torch: torch.utils.data.default_collate([np.array(["a"])]),
    "collate_empty": lambda torch: torch.utils.data.default_collate([]),
    "collate_keys": lambda torch: torch.utils.data.default_collate([{"a": 1}, {"b": 1}]),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input(case):
    result = outcome(case, real)
    assert result[0][0].endswith("Error"), "the case must be an error under torch"
    assert outcome(case, ours) == result


def epochs(count=2, dataset=None, **options):
    """The batches of some epochs, and a number drawn from the default generator between them."""
    def case(torch):
        seed = options.get("generator")
        generator = {} if seed is None else {"generator": torch.Generator().manual_seed(seed)}
        data = torch.utils.data.DataLoader(dataset or Numbers(), **{**options, **generator})
        return [(list(data), torch.rand(()).item(), len(data)) for _ in range(count)]
    return case


def split(lengths, n=10, **options):
    return lambda torch: [list(s.indices) for s in torch.utils.data.random_split(range(n), lengths, **options)]


def drawn(sampler, *args, seed=None, repeat=2, **options):
    """What a sampler yields, and what is left in its generator."""
    def case(torch):
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        s = getattr(torch.utils.data, sampler)(*args, generator=generator, **options)
        return [list(s) for _ in range(repeat)], len(s), None if seed is None else torch.rand(2, generator=generator)
    return case


def distributed(n, replicas, **options):
    def case(torch):
        out = []
        for rank in range(replicas):
            sampler = torch.utils.data.distributed.DistributedSampler(Numbers(n), replicas, rank, **options)
            first = list(sampler)
            sampler.set_epoch(3)
            out.append((first, list(sampler), len(sampler), sampler.total_size))
        return out
    return case


ORDER = {
    "plain": epochs(),
    "shuffle": epochs(shuffle=True, batch_size=3),
    "shuffle_generator": epochs(shuffle=True, batch_size=3, generator=5),
    "drop_last": epochs(shuffle=True, batch_size=4, drop_last=True),
    "single": epochs(shuffle=True, batch_size=None),
    "batch_sampler": epochs(batch_sampler=[[1, 2], [3]]),
    "random": drawn("RandomSampler", range(10)),
    "random_generator": drawn("RandomSampler", range(10), seed=4),
    "random_fewer": drawn("RandomSampler", range(10), num_samples=3, seed=4),
    "random_more": drawn("RandomSampler", range(5), num_samples=13, seed=4),
    "random_multiple": drawn("RandomSampler", range(5), num_samples=10, seed=4),
    "replacement": drawn("RandomSampler", range(10), True, 70, seed=4),
    "replacement_32": drawn("RandomSampler", range(10), replacement=True, num_samples=32, seed=4),
    "replacement_seedless": drawn("RandomSampler", range(10), replacement=True),
    "large": drawn("RandomSampler", range(3000), seed=1, repeat=1),
    "subset": drawn("SubsetRandomSampler", [5, 6, 7, 8], seed=3),
    "weighted": drawn("WeightedRandomSampler", [0.1, 0.9, 0.5], 20, seed=3),
    "weighted_once": drawn("WeightedRandomSampler", [0.1, 0.9, 0.5], 3, replacement=False, seed=3),
    "split": split([3, 7]),
    "split_fractions": split([0.33, 0.33, 0.34]),
    "split_halves": split([0.5, 0.5], 11),
    "split_empty": split([0.01, 0.99]),
    "split_whole": split([1.0]),
    "distributed": distributed(10, 3),
    "distributed_seed": distributed(10, 3, seed=3),
    "distributed_drop": distributed(10, 3, drop_last=True),
    "distributed_in_order": distributed(10, 4, shuffle=False),
    "distributed_few": distributed(2, 5),
}


@pytest.mark.parametrize("case", ORDER.values(), ids=ORDER)
def test_order_and_generator_are_torchs(case):
    same(case)


def batch_of(make):
    return lambda torch: torch.utils.data.default_collate(make(torch))


def converted(make):
    return lambda torch: torch.utils.data.default_convert(make(torch))


COLLATE = {
    "nested": batch_of(lambda torch: [{"a": 1, "b": (1.5, "s", b"z"), "c": Point(1, 2), "d": [torch.zeros(2)],
                                       "e": np.float32(2), "f": np.ones(2, np.int16), "g": True}] * 3),
    "ordered": batch_of(lambda torch: [collections.OrderedDict(b=1, a=2)] * 2),
    "defaultdict": batch_of(lambda torch: [collections.defaultdict(list, a=1)] * 2),
    "deque": batch_of(lambda torch: [collections.deque([1, 2])] * 2),
    "range": batch_of(lambda torch: [range(3)] * 2),
    "mixed_numbers": batch_of(lambda torch: [1, 2.5]),
    "floats_first": batch_of(lambda torch: [1.5, 2]),
    "numpy_scalars": batch_of(lambda torch: [np.float32(1), np.float32(2)]),
    "numpy_bool": batch_of(lambda torch: [np.bool_(True)]),
    "zero_dim_arrays": batch_of(lambda torch: [np.array(3), np.array(4)]),
    "promoted_arrays": batch_of(lambda torch: [np.array([1]), np.array([2.0], np.float32)]),
    "promoted_tensors": batch_of(lambda torch: [torch.tensor([1]), torch.tensor([1.5])]),
    "empty_arrays": batch_of(lambda torch: [np.zeros((0, 2))]),
    "big_integers": batch_of(lambda torch: [2**40, 3]),
    "convert": converted(lambda torch: {"a": 1, "b": (1.5, "s"), "c": Point(1, np.ones(2)), "d": [torch.zeros(2)],
                                        "e": np.float32(2), "f": np.array(["a"]), "g": range(2)}),
    "convert_ordered": converted(lambda torch: collections.OrderedDict(a=np.ones(1))),
    "convert_text": converted(lambda torch: [np.str_("ab"), "cd", b"e"]),
}


@pytest.mark.parametrize("case", COLLATE.values(), ids=COLLATE)
def test_collate(case):
    same(case)


def told(length, **options):
    def case(torch):
        data = torch.utils.data.DataLoader(stream(torch, 5, length), **options)
        return len(data), list(data)
    return case


DATASETS = {
    "tensors": lambda torch: (lambda d: (len(d), d[1], d[1:3], d[[0, 2]]))(
        torch.utils.data.TensorDataset(torch.arange(6), torch.ones(6, 2))),
    "tensor_batches": lambda torch: list(torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.arange(10.0), torch.arange(20).view(10, 2)), 4, shuffle=True)),
    "tensor_subset": lambda torch: list(torch.utils.data.DataLoader(
        torch.utils.data.Subset(torch.utils.data.TensorDataset(torch.arange(10.0)), [3, 1, 4]), 2)),
    "concat": lambda torch: (lambda d: (len(d), d[-1], d[10], d[3], d.cumulative_sizes, d.cummulative_sizes))(
        torch.utils.data.ConcatDataset([Numbers(), [7, 8]])),
    "chain": lambda torch: (list(stream(torch) + stream(torch)),
                            len(torch.utils.data.ChainDataset([stream(torch, 3, 3)] * 2))),
    "stack": lambda torch: (lambda d: (d[2], len(d), d.__getitems__([1, 2])))(
        torch.utils.data.StackDataset(a=Numbers(), b=list("abcdefghij"))),
    "subset": lambda torch: (lambda d: (d[1], len(d), d[[0, 1]], d.__getitems__([0])))(
        torch.utils.data.Subset(Numbers(), [3, 4])),
    "iterable": lambda torch: list(torch.utils.data.DataLoader(stream(torch), 4)),
    "iterable_drop": lambda torch: list(torch.utils.data.DataLoader(stream(torch), 4, drop_last=True)),
    "iterable_single": lambda torch: list(torch.utils.data.DataLoader(stream(torch), None)),
    "length_told": told(3, batch_size=2),
    "length_told_single": told(3, batch_size=None),
    "pin_memory": lambda torch: list(torch.utils.data.DataLoader(Numbers(), 5, pin_memory=True)),
    "many_workers": lambda torch: torch.utils.data.DataLoader(Numbers(), num_workers=500).num_workers,
    "attributes": lambda torch: (lambda d: (d.batch_size, d.batch_sampler, type(d.sampler).__name__, d.drop_last,
                                            d.collate_fn.__name__, d.prefetch_factor, len(d)))(
        torch.utils.data.DataLoader(Numbers(), None)),
    "worker_info": lambda torch: torch.utils.data.get_worker_info(),
}


@pytest.mark.parametrize("case", DATASETS.values(), ids=DATASETS)
def test_datasets(case):
    same(case)


def test_getitems_is_used_for_whole_batches():
    class Whole(Numbers):
        def __getitems__(self, indices):
            return [100 * i for i in indices]

    same(lambda torch: list(torch.utils.data.DataLoader(Whole(), 4)))


def test_iterators_are_independent():
    def case(torch):
        data = torch.utils.data.DataLoader(Numbers(), 4, shuffle=True)
        return list(zip(data, data))
    same(case)


def test_public_names():
    missing = [n for n in real.utils.data.__all__ if not hasattr(ours.utils.data, n)]
    # data pipes: deprecated in torch, and not here
    assert {n for n in missing if "Pipe" not in n} <= {
        "DataChunk", "argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism",
        "non_deterministic", "runtime_validation", "runtime_validation_disabled"}


def test_iterators_over_a_loader_of_a_program_of_its_own():
    """fastai hands the iterators an object with torch's names."""
    from torch.utils.data.dataloader import _SingleProcessDataLoaderIter as theirs

    from torchlike.utils.data.dataloader import _DatasetKind
    from torchlike.utils.data.dataloader import _SingleProcessDataLoaderIter as ours

    class Loader:
        _IterableDataset_len_called, _auto_collation, drop_last, in_order, generator, prefetch_factor = None, False, False, True, None, 2
        _dataset_kind, timeout, num_workers, pin_memory, pin_memory_device, persistent_workers = _DatasetKind.Iterable, 0, 0, False, "", False
        multiprocessing_context = worker_init_fn = None
        dataset, _index_sampler = range(5), itertools.count()

        @staticmethod
        def collate_fn(x):
            return x * 2

        @staticmethod
        def _get_shared_seed():
            return None

    assert list(ours(Loader())) == list(theirs(Loader())) == [0, 2, 4, 6, 8]


class Words:
    """Words of several lengths, written into rows of zeros."""

    def __init__(self, torch, words=40):
        self.torch, self.words = torch, [[(i * k) % 7 + 1 for k in range(1, 3 + i * i % 9)] for i in range(words)]

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        x = self.torch.zeros(12, dtype=self.torch.int64)
        x[1:1 + len(self.words[i])] = self.torch.tensor(self.words[i])
        x[1 + len(self.words[i]):] = -1
        return x, (x > 0).sum()


@same
def test_words_of_any_length_in_order_and_shuffled(torch):
    ordered = list(torch.utils.data.DataLoader(Words(torch), 6))
    return ordered, list(torch.utils.data.DataLoader(Words(torch), 6, shuffle=True)), torch.randn(3)


@pytest.mark.usefixtures("recorded")
def test_samples_that_are_new_each_time_leave_the_step_its_program(subject):
    """Recorded with the step they made each a program of its own: none was ever compiled, and the recorder's memory grew."""
    from torchlike._core import history, program
    weight = subject.ones(3, requires_grad=True)
    history.entries.clear()
    sizes, optimizer = [], subject.optim.SGD([weight], 0.1)
    for x, n in subject.utils.data.DataLoader(Words(subject), 4):
        optimizer.zero_grad()
        (weight * x.float().mean() * n.sum()).sum().backward()
        optimizer.step()
        sizes.append(program.trie.size)
    weight.tolist()
    steps = [e.info for e in history.entries if e.reason == "end of optimizer step"]
    assert program.is_immediate() or (len(steps) == 10 and len({tuple([(s.plan, s.refs) for s in info.steps]) for info in steps[2:]}) == 1)
    assert program.is_immediate() or len({id(info) for info in steps[4:]}) == 1
    assert program.is_immediate() or sizes[-1] - sizes[4] < 10 < sizes[4] - sizes[0], sizes


def test_samples_of_lengths_that_change_run_no_programs():
    """Fetched op by op once their operations are new again and again; small ones need no program even then."""
    from torchlike._core import history, program_info

    class Words(ours.utils.data.Dataset):
        def __len__(self):
            return 400

        def __getitem__(self, i):
            word = ours.arange(1 + i * 7 % 61)
            return ours.cat([word, ours.zeros(61 - len(word), dtype=ours.int64)]) * 2, ours.ones(3).cumsum(0)
    loader = iter(ours.utils.data.DataLoader(Words(), batch_size=20))
    for _ in range(10):
        next(loader)
    before, ran = history.at_once, program_info.clock.now
    batches = list(loader)
    assert history.at_once - before >= 200 * 5 and program_info.clock.now == ran
    assert batches[0][0][1].tolist() == [2 * k if k < 1 + 201 * 7 % 61 else 0 for k in range(61)] and batches[0][1][0].tolist() == [1, 2, 3]
