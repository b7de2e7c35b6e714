"""Lines of people who try the library for the first time, mistakes among them, in both libraries: the same text, the same errors."""
import pytest
from forked import started
from test_expressions import lines, outcome

MISTAKES = """
torch.tensor([True, False]).clamp(True)
torch.tensor([True, False]).clamp_max(False)
torch.tensor([True, False]).clamp(False, True)
torch.tensor([True, False]).clamp(1), torch.tensor([True, False]).clamp_min(torch.tensor([True, True]))
b = torch.tensor([True, False]); b // b
b = torch.tensor([True, False]); b % False
b = torch.tensor([True, False]); b.fmod(b)
b = torch.tensor([True, False]); b // 0
torch.cov(torch.tensor([True, False]))
torch.corrcoef(torch.tensor([True, False]))
int(torch.tensor(2 + 0j)), float(torch.tensor([1.5 + 0j])), complex(torch.tensor(2 + 1j))
int(torch.tensor(2 + 1j))
float(torch.tensor(1j))
torch.ones(2).std_mean()
torch.ones(2).var_mean(0)
torch.tensor([1.5, "a"], dtype=torch.float32)
torch.tensor([[1], ["a"]], dtype=torch.int64)
torch.tensor([1, None], dtype=torch.float64)
torch.tensor([1, None])
torch.tensor([None, "a"])
torch.tensor([1, [2]], dtype=torch.float32)
torch.tensor({1: 2}, dtype=torch.bool)
torch.tensor([{1}], dtype=torch.complex64)
torch.tensor("a", dtype=torch.int64)
torch.LongTensor([1.5, "a"])
torch.FloatTensor([object()])
import decimal; torch.tensor([decimal.Decimal("1.5"), 2], dtype=torch.float64), torch.tensor(decimal.Decimal(3), dtype=torch.float32)
import decimal; torch.tensor([decimal.Decimal("1.5")])
import decimal; torch.tensor([decimal.Decimal("1.5")], dtype=torch.int64)
import fractions; torch.tensor([fractions.Fraction(1, 4)], dtype=torch.float32)
import numpy as np; x = torch.zeros(2); x[:] = np.ones(2)
import decimal; x = torch.zeros(2); x[0] = decimal.Decimal(1)
torch.ones(3).backward(torch.ones(2))
torch.ones(3).backward(torch.ones(3, dtype=torch.complex64))
torch.ones(3).backward()
torch.autograd.grad([torch.ones(3)], [torch.ones(2, requires_grad=True)], [torch.ones(2)])
torch.autograd.backward([torch.ones(3), torch.ones(2, requires_grad=True) * 1], (torch.ones(3), 3))
torch.autograd.backward([torch.ones(2, requires_grad=True) * 1, torch.ones(1)], (torch.ones(2), None))
torch.randint(10)
torch.randint(0, 10)
torch.randint(0, 10, 3)
torch.randint((2,))
torch.rand(2, generator=3)
torch.randn((2,), generator=3)
torch.randint(0, 10, (2,), generator=3)
torch.randperm(3, generator=3)
torch.bernoulli(torch.ones(2), generator=3)
torch.multinomial(torch.ones(2), 1, generator=3)
torch.normal(0.0, 1.0, (2,), generator=3)
torch.where(torch.ones(2).bool(), 1)
torch.where(torch.ones(2).bool(), other=1)
F.pad(torch.ones(1, 1, 2, 3), (1, 1), mode="foo")
F.pad(torch.ones(1, 1, 2, 3), (1,), mode="foo")
F.pad(torch.ones(1, 1, 2, 3), (1, 1), mode="reflect")
torch.compile(lambda x: x, backend="foo")
torch.compile(lambda x: x, mode="foo")
torch.compile(mode="default", options={"a": 1})(lambda x: x)
nn.ReLU().compile(mode="foo")
"""
COPIES = """
i = torch.tensor([0, 1]); torch.zeros(3).index_copy_(0, i, torch.ones(3))
i = torch.tensor([0, 1]); torch.zeros(3, 2, 4).index_copy(0, i, torch.ones(2, 3, 3))
i = torch.tensor([0, 1]); torch.zeros(3, 2, 4).index_copy(1, i, torch.ones(3, 2, 3))
i = torch.tensor([0, 1]); torch.zeros(3, 2, 4).index_copy(2, i, torch.ones(3, 2))
i = torch.tensor([0, 1]); torch.zeros(()).index_copy(0, i, torch.ones(2))
torch.zeros(()).index_copy(0, torch.tensor([0]), torch.ones(2))
torch.zeros(()).index_copy(0, torch.tensor(0), torch.ones(1)), torch.zeros(3).index_copy(0, torch.tensor([2]), torch.ones(()))
torch.zeros(3, 2).index_copy(0, torch.tensor([0]), torch.ones(()))
i = torch.tensor([0, 1]); torch.zeros(3).index_copy(0, i, torch.ones(()))
i = torch.tensor([0, 1]); torch.zeros(3).index_copy(0, i, torch.ones(2).double())
i = torch.tensor([[0, 1]]); torch.zeros(3).index_copy(0, i, torch.ones(2))
torch.zeros(3).index_copy(0, torch.tensor([0, 5]), torch.ones(2))
torch.zeros(3).index_copy(0, [0, 1], torch.ones(2))
i = torch.tensor([0, 1]); torch.zeros(3).index_reduce(0, i, torch.ones(3), "mean")
i = torch.tensor([0, 1]); torch.zeros(3).index_reduce(0, i, torch.ones(2).double(), "mean")
i = torch.tensor([[0, 1]]); torch.zeros(3).index_reduce(0, i, torch.ones(2), "mean")
torch.ones(3).scatter_reduce(0, torch.tensor([0]), torch.tensor([5.0]), "max"), torch.ones(3).scatter_reduce(0, torch.tensor([0]), torch.tensor([-5.0]), "min")
torch.ones(2, 2).scatter_reduce(0, torch.tensor([[0, 1]]), torch.tensor([[5.0, -1]]), "max", include_self=False)
"""
SHAPES = """
torch.ones(2).copy_(torch.ones(3))
torch.ones(2).copy_(torch.ones(2, 2))
torch.ones(2, 3).copy_(torch.ones(2, 2).int())
torch.ones(1).copy_(torch.ones(3))
torch.ones(()).copy_(torch.ones(3))
torch.ones(3, 2, requires_grad=True).clone().copy_(torch.ones(3, 3))
nn.Linear(2, 3).weight.data.copy_(torch.ones(3, 3))
x = torch.ones(2); x[...] = torch.ones(3)
x = torch.ones(2, 2); x[:] = torch.ones(3)
x = torch.ones(1); x[:] = torch.ones(3)
x = torch.arange(6.0).view(2, 3); x[0] = x[1]; x[:] = x.flip(0); x[:, 1] = torch.tensor([5]); x
torch.einsum("é", torch.ones(2))
torch.einsum("i->é", torch.ones(2))
torch.einsum("i,é", torch.ones(2), torch.ones(2))
torch.einsum("ij,j1", torch.ones(2, 2), torch.ones(2, 2))
"""
DEVICES = """
torch.ones((), device="meta").item()
float(torch.ones((), device="meta"))
bool(torch.ones((), device="meta") > 0)
[1][torch.ones((), device="meta", dtype=torch.int64)]
torch.ones(1, device="meta").tolist()
torch.ones(2, device="meta").item()
torch.device()
torch.device("cpu", "a")
torch.device("cpu", 1.5)
torch.device("cuda", True)
torch.device("cuda", torch.tensor(1))
"""


@pytest.mark.parametrize("program", lines(MISTAKES + COPIES + SHAPES + DEVICES))
def test_both_print_it(subject, oracle, program):
    assert outcome(subject, program) == outcome(oracle, program)


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_samples_at_a_border_push_no_position(subject, oracle, padding):
    """A grid of an image's own pixels, as spatial transformers start with: the outermost lie exactly on the border."""
    def gradient(torch):
        F = torch.nn.functional
        x = torch.arange(25.0).view(1, 1, 5, 5).sin()
        grid = F.affine_grid(torch.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 5, 5), align_corners=True).requires_grad_()
        F.grid_sample(x, grid, "bilinear", padding, True).square().sum().backward()
        return grid.grad.numpy()
    assert abs(gradient(subject) - gradient(oracle)).max() < 1e-5


def test_an_error_names_the_function_that_sparse_tensors_lack(subject, oracle):
    for library in (subject, oracle):
        with pytest.raises(NotImplementedError, match="Could not run 'aten::equal' with arguments from the 'SparseCPU' backend"):
            library.equal(library.eye(2).to_sparse(), library.eye(2).to_sparse())


def test_a_generator_of_a_device(subject, oracle):
    for library in (subject, oracle):
        if library.cuda.is_available():
            assert library.Generator("cuda").device.type == "cuda"
        else:
            with pytest.raises(RuntimeError, match="Cannot get CUDA generator without ATen_cuda library"):
                library.Generator("cuda")


SHARING = """
import torch.multiprocessing as mp
import torch


def work(x):
    print(x.fill_(1))


if __name__ == "__main__":
    x = torch.zeros(3).share_memory_()
    p = mp.get_context("spawn").Process(target=work, args=(x,))
    p.start()
    p.join()
    print(x)
"""


def test_a_process_that_ends_says_nothing_of_what_it_shared(tmp_path):
    (tmp_path / "sharing.py").write_text(SHARING)
    ended = started("-m", "torchlike.run", tmp_path / "sharing.py")
    assert (ended.stdout, ended.stderr) == ("tensor([1., 1., 1.])\n" * 2, "")
