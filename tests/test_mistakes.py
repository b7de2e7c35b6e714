"""Mistakes of programs in use, class and words as PyTorch has them, and what such programs looked at beside them."""
import subprocess
import sys

import pytest
from same import same

CALLS = """F.cross_entropy(image, classes[:, :5]); F.cross_entropy(image, classes[:, :, 0]); F.nll_loss(image, classes, weight=ones(2))
F.nll_loss(image[..., 0], classes[..., 0], weight=ones(2))
F.nll_loss(image, classes[:, :5], weight=ones(2)); F.nll_loss(ones(4), classes[0]); F.nll_loss(ones(2, 4), classes[0]); F.nll_loss(image[..., 0], classes[:, :5, 0])
F.embedding_bag(L([1, 2, 3]), ones(5, 2), L([1, 2])); F.embedding_bag(L([1, 2, 3]).int(), ones(5, 2), L([1, 2]).int()); F.kl_div(ones(2, 5), ones(2, 3), reduction="sum")
F.kl_div(ones(2, 5), ones(2, 3), log_target=True, reduction="sum"); F.scaled_dot_product_attention(ones(2, 4, 8, 3), ones(2, 3, 8, 3), ones(2, 4, 8, 3))
F.scaled_dot_product_attention(ones(2, 1, 8, 3), ones(2, 5, 8, 3), ones(2, 4, 8, 3)); torch.vmap(lambda x: x.item())(ones(2, 3)); ones(3).item(); ones(3, device="meta").item()
F.ctc_loss(ones(2, 4), L([[1, 2], [1, 2]]), [1], [1]); torch.nn.CrossEntropyLoss(ones(4, 3), L([0, 1, 2, 0])); F.mse_loss(ones(2), ones(2), ones(2), ones(2))
torch.nn.LSTMCell(3, 4)(ones(4, 3), ones(4, 4)); ones(2).resize_as_(5); F.cross_entropy(ones(2, 3), L([0, 1]), ignore_index="a")
torch.meshgrid(L([1, 2]), ones(2, 2)); torch.nn.utils.rnn.pad_sequence([ones(2), ones(2, 1)]); torch.nn.utils.rnn.pad_sequence([ones(2, 3), ones(1, 2)])
torch.nn.Conv2d(1, 1, 1)(image, image); torch.nn.MaxPool1d(2)(image, 2); torch.nn.AvgPool3d(2)(); torch.nn.AdaptiveAvgPool2d(1)(image, 1); torch.nn.ReflectionPad2d(1)(image, 1)
torch.nn.LPPool2d(2, 2)(image, x=1); torch.nn.FractionalMaxPool2d(2, 2)(); torch.softmax(classes, 0); torch.log_softmax(classes, 1); torch.softmax(classes, -1)
torch.nn.AdaptiveMaxPool3d(1)(ones(2))
torch.nn.Parameter(ones(2), 1); torch.nn.Parameter(None, "a"); torch.Tensor._make_subclass(torch.nn.Parameter, 3); torch.optim.Adam([ones(2)], betas=(0.9,))"""


@pytest.mark.parametrize("call", [c.strip() for c in CALLS.replace("\n", ";").split(";")])
def test_words(subject, oracle, call):
    found = []
    for torch in (subject, oracle):
        names = {"torch": torch, "F": torch.nn.functional, "ones": torch.ones, "L": torch.tensor, "image": torch.ones(3, 4, 8, 8), "classes": torch.zeros(3, 8, 8).long()}
        with pytest.raises(Exception) as error:
            eval(call, names)
        found.append((error.type.__name__, str(error.value)))
    assert found[0] == found[1]


@same
def test_where_distinct_slices_lie(torch):
    x = torch.tensor([[[0, 1, 1], [1, 0, 0]], [[1, 1, 1], [1, 0, 0]]])
    found = [torch.unique(y, dim=d) for y in (x, x.float().requires_grad_(), torch.zeros(3, 5)) for d in range(y.ndim)]
    found += [torch.unique_consecutive(x, dim=d) for d in range(3)] + list(torch.unique(x, dim=1, return_counts=True))
    return [(y.detach(), tuple(y.shape), y.stride(), y.is_contiguous()) for y in found]


@same
def test_divergences(torch):
    a, b = torch.rand(3, 4).requires_grad_(), torch.rand(3, 4).requires_grad_()
    found = []
    for log_target in (False, True):
        loss = torch.nn.functional.kl_div(a.log(), b, reduction="batchmean", log_target=log_target)
        first = torch.autograd.grad(loss, [a, b], create_graph=True)
        found += [loss, *first, *torch.autograd.grad(first[0].sum() + first[1].sum(), [a, b])]
    return found


WORKERS = """
import warnings, torchlike
from torchlike.utils.data import DataLoader
if __name__ == "__main__":
    torchlike.utils.data.dataloader.cpu_count = lambda: 1
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        loader = DataLoader(range(4), num_workers=2)
        print(len(list(loader)))
    print({w.filename == __file__ for w in found}, len(found))
"""


def test_where_too_many_workers_are_told(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(WORKERS)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["4", "{True} 2"], done.stderr
