"""Memory that processes share (`share_memory_`): the same script under both libraries prints the same, whether processes are forked or spawned."""
import subprocess
import sys

import pytest
from same import caught, error, same

SCRIPT = """
import multiprocessing
import sys

import {library} as torch


def train(rank, model, x, y, count, lock, done):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        with lock:
            count.add_(1)
    done[rank] = rank + 1


def answer(wanted, given):
    views = wanted.get()
    views[0].mul_(2)
    views[1][1] = -5
    given.put([(v.is_shared(), v.stride(), v.requires_grad) for v in views])
    wanted.get()


def main(method):
    torch.manual_seed(0)
    context = multiprocessing.get_context(method)
    model = torch.nn.Linear(4, 1).share_memory()
    x = torch.randn(64, 4)
    y = x @ torch.tensor([[1.0], [2.0], [3.0], [4.0]]) + 1
    count, done, lock = torch.zeros(1, dtype=torch.long).share_memory_(), torch.zeros(2).share_memory_(), context.Lock()
    workers = [context.Process(target=train, args=(i, model, x, y, count, lock, done)) for i in range(2)]
    for p in workers:
        p.start()
    for p in workers:
        p.join()
    print(count, done, (model.weight * 10).round(), model.bias.requires_grad, [p.exitcode for p in workers])
    base = torch.ones(5).share_memory_()
    turned = torch.arange(6.0).view(2, 3).t().share_memory_()
    large = torch.zeros(2**20).share_memory_()
    wanted, given = context.SimpleQueue(), context.SimpleQueue()
    worker = context.Process(target=answer, args=(wanted, given))
    worker.start()
    wanted.put([base[1:4:2], turned, turned[:, 1], large, torch.nn.Parameter(base)])
    print(given.get(), base, turned)
    wanted.put(None)
    worker.join()


if __name__ == "__main__":
    main(sys.argv[1])
"""


def printed(library: str, method: str, folder) -> str:
    path = folder / f"by_{library}.py"
    path.write_text(SCRIPT.replace("{library}", library))
    ran = subprocess.run([sys.executable, "-W", "ignore", path, method], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_train_one_model(tmp_path, method):
    assert printed("torchlike", method, tmp_path) == printed("torch", method, tmp_path)


@same
def test_what_is_shared(torch):
    x = torch.ones(3)
    view, before = x[1:], [x.is_shared(), x.untyped_storage().is_shared()]
    itself = x.share_memory_() is x
    parameter, empty, turned = torch.nn.Parameter(torch.ones(2)), torch.zeros(0), torch.ones(2, 3).t()
    found = [t.share_memory_().is_shared() for t in (parameter, empty, turned, torch.ones(3, requires_grad=True) * 2)]
    storage = torch.ones(2).untyped_storage()
    return (before, itself, found, parameter._version, turned.stride(), storage.share_memory_() is storage, storage.is_shared(), storage.tolist(),
            [t.is_shared() for t in (x, view, x.clone(), x.view(-1), x.data, x.detach(), x.untyped_storage(), x.storage())],
            error(torch.ones(2, device="meta").share_memory_), torch.UntypedStorage._new_shared(8).is_shared(),
            torch.zeros(3).storage()._new_shared(4).size())


@same
def test_modules_share_parameters_buffers_and_gradients(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    m(torch.ones(2, 2)).sum().backward()
    m.share_memory()
    found = [t.is_shared() for p in m.parameters() for t in (p, p.grad)] + [b.is_shared() for b in m.buffers()]
    torch.optim.SGD(m.parameters(), lr=0.1).step()
    return found, [p.is_shared() for p in m.parameters()]


@same
def test_numpy_sees_shared_memory(torch):
    import numpy as np
    old = np.ones(3)
    x = torch.from_numpy(old).share_memory_()
    new = x.numpy()
    x.add_(1)
    new[0] = 9
    x[1] = 7
    return x, new, old


@pytest.mark.filterwarnings("ignore")
@same
def test_what_is_sent_to_processes(torch):
    """A graph stays behind, so what belongs to one is refused; in a file or a copy it becomes a leaf."""
    import importlib
    import pickle
    multiprocessing = importlib.import_module(f"{torch.__name__}.multiprocessing")

    def sent(x):
        queue = multiprocessing.SimpleQueue()
        queue.put(x)
        return queue.get()
    inner, x = torch.ones(2, requires_grad=True) * 2, torch.arange(6.0).view(2, 3)
    kept = pickle.loads(pickle.dumps(inner))
    storage, view, parameter = sent([x.storage(), x[1], torch.nn.Parameter(x)])
    pickled = pickle.loads(pickle.dumps(x.T.storage()))
    return (caught(sent, inner), sent(inner.detach()), kept, kept.requires_grad, kept.is_leaf, type(storage).__name__, storage.tolist(), storage.dtype == torch.float32,
            view, parameter, sent(x.untyped_storage()).nbytes(), pickled.tolist(), pickled.dtype == torch.float32)
