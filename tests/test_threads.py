"""Recording and backward from several threads; failures in the middle leave everything usable."""
import io
import threading

import pytest

import torchlike as torch


def _run(functions):
    failures = []

    def guarded(f):
        try:
            f()
        except BaseException as e:  # reported by the test's own thread
            failures.append(e)
    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def test_threads_compute_their_own_results():
    found = {}

    def work(k):
        x = torch.full((3,), float(k), requires_grad=True)
        for _ in range(10):
            y = (x * k + 1).sum()
        y.backward()
        found[k] = x.grad.tolist(), y.item()
    _run([lambda k=k: work(k) for k in range(6)])
    assert found == {k: ([float(k)] * 3, 3.0 * (k * k + 1)) for k in range(6)}


def test_hogwild_sum_of_updates():
    shared, lock = torch.zeros(4), threading.Lock()

    def work():
        for _ in range(20):
            with lock:
                shared.add_(1)
    _run([work] * 4)
    assert shared.tolist() == [80.0] * 4


def test_backward_into_shared_parameters():
    w = torch.ones(2, requires_grad=True)
    _run([lambda k=k: torch.autograd.grad((w * k).sum(), w) for k in range(5)])
    lock = threading.Lock()

    def work(k):
        loss = (w * k).sum()
        with lock:
            loss.backward()
    _run([lambda k=k: work(k) for k in range(5)])
    assert w.grad.tolist() == [10.0, 10.0]


def test_vmap_in_threads():
    found = {}

    def work(k):
        found[k] = torch.vmap(lambda a: (a * k).sum())(torch.ones(3, 2)).tolist()
    _run([lambda k=k: work(k) for k in range(5)])
    assert found == {k: [2.0 * k] * 3 for k in range(5)}


def test_files_belong_to_a_thread():
    """Each thread's torch.save takes the tensors of its own file apart, also those of a class with a `__reduce_ex__`."""
    meet, found = threading.Barrier(2), {}

    class Own(torch.Tensor):
        def __reduce_ex__(self, protocol):
            meet.wait(60)
            parts = self.detach().as_subclass(torch.Tensor).__reduce_ex__(protocol)
            meet.wait(60)
            return parts

    def work(k):
        file = io.BytesIO()
        torch.save(torch.full((3,), float(k)).as_subclass(Own), file)
        file.seek(0)
        found[k] = torch.load(file).tolist()
    _run([lambda k=k: work(k) for k in range(2)])
    assert found == {k: [float(k)] * 3 for k in range(2)}


def test_fake_kernels_are_checked_by_a_thread():
    meet, found = threading.Barrier(2), {}

    def work(k):
        with torch.library.unknown_sizes() as sizes:
            meet.wait(60)
            made = [torch.library.get_ctx().new_dynamic_size() for _ in range(k + 1)]
            meet.wait(60)
            found[k] = set(made) == sizes, len(sizes)
    _run([lambda k=k: work(k) for k in range(2)])
    assert found == {0: (True, 1), 1: (True, 2)}


def test_modes_belong_to_a_thread():
    seen = {}

    def work():
        seen["grad"] = torch.is_grad_enabled()
        seen["hooks"] = (torch.ones(1, requires_grad=True) * 2).grad_fn is not None
    with torch.no_grad(), torch.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        _run([work])
    assert seen == {"grad": True, "hooks": True}


@pytest.mark.parametrize("kind", ["tensor", "pre", "post", "accumulate"])
def test_an_exception_in_a_hook_leaves_the_engine_usable(kind):
    x = torch.ones(2, requires_grad=True)
    y = (x * 3).exp()

    def fails(*args):
        raise KeyError("mine")
    if kind == "tensor":
        y.register_hook(fails)
    elif kind == "pre":
        y.grad_fn.register_prehook(fails)
    elif kind == "post":
        y.grad_fn.register_hook(fails)
    else:
        x.register_post_accumulate_grad_hook(fails)
    with pytest.raises(KeyError):
        y.sum().backward()
    assert torch.is_grad_enabled()
    z = torch.ones(2, requires_grad=True)
    (z * 2).sum().backward()
    assert z.grad.tolist() == [2.0, 2.0]


def test_ctrl_c_in_the_middle_of_recording():
    x = torch.arange(3.0)
    y = x * 2

    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        Stop.apply((y + 1).requires_grad_())
    assert torch.is_grad_enabled()
    assert (y + 1).tolist() == [1.0, 3.0, 5.0]
