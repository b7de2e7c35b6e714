"""`python -m torchlike.run` and `torchlike.install()`: the alias, and that a program sees what plain Python shows it.

Everything runs in child processes: the alias must not reach the tests that use the real torch.
"""

import operator
import os
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAUNCHER = ("-m", "torchlike.run")


def python(*arguments, cwd, given="", **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TORCHLIKE_ALIAS")}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=120,
        env={**clean, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        input=given,
    )  # fmt: skip


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def check(folder: Path, text: str, *arguments: str) -> str:
    """Runs `text` as a script under the launcher; it must succeed; returns what it printed."""
    (folder / "program.py").write_text(textwrap.dedent(text))
    done = python(*LAUNCHER, "program.py", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def same(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess:
    """Runs plain Python and the launcher with the same arguments; output, errors and exit code must be equal."""
    plain, ours = python(*arguments, cwd=folder, given=given), python(*LAUNCHER, *arguments, cwd=folder, given=given)
    # Plain Python shows its own frames of `-m`; the launcher hides those as well.
    plain.stderr = re.sub(r'  File "<frozen (runpy|importlib.*)>", .*\n', "", plain.stderr)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)
    return plain


def test_every_form_of_import_gives_the_same_objects(tmp_path):
    check(
        tmp_path,
        """
        import importlib, sys
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        from torch.nn import functional as F2
        from torch.utils.data import DataLoader
        import torchlike, torchlike.nn.functional, torchlike.utils.data

        assert torch is torchlike is sys.modules["torch"] is importlib.import_module("torch")
        assert nn is torch.nn is torchlike.nn is sys.modules["torch.nn"]
        assert F is F2 is torchlike.nn.functional is importlib.import_module("torch.nn.functional")
        assert DataLoader is torchlike.utils.data.DataLoader
        assert torch.nn.__spec__.name == "torchlike.nn" and torch.nn.__name__ == "torch.nn"
        files = [getattr(m, "__file__", None) for n, m in sys.modules.items() if n.startswith("torchlike")]
        files = [f for f in files if f]
        assert len(files) == len(set(files)), "a file was imported twice"
        assert not any("site-packages/torch/" in (getattr(m, "__file__", None) or "") for m in sys.modules.values())
        """,
    )


def test_install_inside_a_process(tmp_path):
    write(
        tmp_path,
        {
            "a.py": """
        import sys
        import torchlike
        assert "torch" not in sys.modules
        torchlike.install()
        torchlike.install()
        import torch, torch.nn
        assert torch is torchlike and torch.nn is torchlike.nn
        assert sum(type(f).__module__ == "torchlike._alias" for f in sys.meta_path) == 1
        import torch.utils.data
        functions = torch.nn.init.uniform_, torch.nn.utils.clip_grad_norm_, torch.utils.data.random_split
        assert [f.__module__ for f in functions] == ["torch.nn.init", "torch.nn.utils.clip_grad", "torch.utils.data.dataset"]
    """,
            "b.py": """
        import sys, types
        sys.modules["torch"] = types.ModuleType("torch")
        import torchlike
        torchlike.install()
    """,
        },
    )
    done = python("a.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = python("b.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "RuntimeError: torchlike.install() must come before the first `import torch`" in done.stderr


def test_a_missing_name_says_that_it_is_not_supported_yet(tmp_path):
    expected = [
        ("import torch.no_such_module", "ModuleNotFoundError", "torch.no_such_module"),
        ("import torch.no_such_module.deeper", "ModuleNotFoundError", "torch.no_such_module"),
        ("import torch.utils.no_such_module", "ModuleNotFoundError", "torch.utils.no_such_module"),
        ("from torch import no_such_name", "ImportError", "torch.no_such_name"),
        ("from torch.nn import no_such_name", "ImportError", "torch.nn.no_such_name"),
        ("from torch.nn.functional import no_such_name", "ImportError", "torch.nn.functional.no_such_name"),
        ("torch.no_such_name", "AttributeError", "torch.no_such_name"),
        ("torch.nn.no_such_name", "AttributeError", "torch.nn.no_such_name"),
    ]
    printed = check(
        tmp_path,
        f"""
        import torch
        for statement in {[statement for statement, _, _ in expected]}:
            try:
                exec(statement)
            except Exception as error:
                print(type(error).__name__, error)
        assert not hasattr(torch, "no_such_name") and getattr(torch, "no_such_name", 3) == 3
        """,
    )
    for line, (statement, error, name) in zip(printed.splitlines(), expected, strict=True):
        assert line.startswith(error) and f"{name} is not supported yet by torchlike" in line, statement


def test_libraries_find_torch_and_its_version(tmp_path):
    check(
        tmp_path,
        """
        import importlib.metadata as metadata, importlib.util, pickle, pkgutil, sys
        assert importlib.util.find_spec("torch") is not None
        assert importlib.util.find_spec("torch.nn") is not None
        assert importlib.util.find_spec("torch.no_such_module") is None
        assert metadata.version("torch") == "2.13.0+torchlike"
        assert metadata.distribution("torch").metadata["Name"] == "torch"
        assert "torch" in metadata.packages_distributions()
        import torch, torch.version
        v = torch.__version__
        assert isinstance(v, str) and v == "2.13.0+torchlike" == torch.version.__version__ and v.startswith("2.13")
        assert torch.version.cuda is None and torch.version.hip is None and isinstance(torch.version.git_version, str)
        assert pickle.loads(pickle.dumps(v)) == v
        assert "nn" in [m.name for m in pkgutil.iter_modules(torch.__path__)]
        assert pkgutil.resolve_name("torch.nn:Linear") is torch.nn.Linear
        """,
    )


def test_versions_compare_as_torch_s_do():
    from torch.torch_version import TorchVersion as Real

    from torchlike.torch_version import TorchVersion as Ours

    def outcome(compare, a, b):
        try:
            return compare(a, b)
        except TypeError:
            return TypeError

    versions = [
        "2.13.0+torchlike",
        "2.13.0",
        "2.13.0a0+git12",
        "2.13.0rc1",
        "2.13.0.dev20260101",
        "1!1.0",
        "2.9.1.post1",
    ]
    others = [*versions, "2.13", "2.9", "3", "parrot", (2, 13), (2, 9), (2, "13"), [2, 13, 0], 2.1, None]
    for a in versions:
        for b in others:
            for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
                assert outcome(compare, Ours(a), b) == outcome(compare, Real(a), b), (a, compare, b)
        assert hash(Ours(a)) == hash(a) and repr(Ours(a)) == repr(a)


def test_a_program_sees_what_plain_python_shows(tmp_path):
    write(
        tmp_path,
        {
            "sub/program.py": """
        import __main__, os, pickle, sys

        class Local:
            def __eq__(self, other):
                return type(self) is type(other)

        print(sys.argv, sys.path[0], __file__, __name__, __package__, __spec__, type(__loader__).__name__)
        print(__main__.Local is Local, pickle.loads(pickle.dumps(Local())) == Local(), sorted(vars(__main__)))
        print(__import__("neighbour").__file__, len(sys.path), os.getcwd())
    """,
            "sub/neighbour.py": "",
        },
    )
    assert "'a b', '--flag'" in same(tmp_path, "sub/program.py", "a b", "--flag").stdout
    same(tmp_path, "sub/../sub/program.py", "-m", "x")
    same(tmp_path, str(tmp_path / "sub" / "program.py"))
    (tmp_path / "link.py").symlink_to(tmp_path / "sub" / "program.py")
    same(tmp_path, "link.py")


def test_modules_directories_and_archives_run(tmp_path):
    body = """
        import sys
        print(sys.argv, sys.path[0], __file__, __name__, __package__, __spec__ and __spec__.name)
    """
    write(
        tmp_path,
        {
            "mod.py": body,
            "pkg/__init__.py": "",
            "pkg/__main__.py": body,
            "pkg/part.py": "from . import __main__",
            "empty/x.py": "",
            "broken.py": "import nowhere",
        },
    )
    for arguments in (["mod", "-x", "1"], ["pkg"], ["pkg.part"], ["nothing"], ["pkg.nothing"], ["empty"], ["broken"]):
        same(tmp_path, "-m", *arguments)
    same(tmp_path, "pkg")
    same(tmp_path, "empty")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", textwrap.dedent(body))
    same(tmp_path, "app.zip", "1")


@pytest.mark.parametrize(
    "text",
    [
        "import sys; print(sys.argv, repr(sys.path[0]), __name__, __package__, __spec__, __loader__, __doc__, sorted(globals()))",
        "import neighbour; print(neighbour.__file__)",
        "def f():\n    1 / 0\nf()",
        "x = (",
        "import sys; sys.exit(3)",
        "",
    ],
)
def test_a_program_given_as_text(tmp_path, text):
    (tmp_path / "neighbour.py").write_text("")
    same(tmp_path, "-c", text)
    same(tmp_path, "-c", text, "-m", "x")
    same(tmp_path, "-", "x", given=text)


def test_a_text_has_the_alias(tmp_path):
    done = python(*LAUNCHER, "-c", "import torch, sys; print(torch.ones(2).sum().item(), 'torchlike' in sys.modules)", cwd=tmp_path)
    assert done.stdout == "2.0 True\n", done.stderr


def test_warnings_and_programs_of_a_text_name_its_lines(tmp_path):
    text = "import torch\ndef f(x):\n    return x.add(2, x)\nprint(f(torch.ones(1)).item())\n" + "print(torch.explain())"
    for arguments, given, name in ((("-c", text), "", "<string>"), (("-",), text, "<stdin>")):
        done = python(*LAUNCHER, *arguments, cwd=tmp_path, given=given)
        assert done.stderr.startswith(f"{name}:3: UserWarning: This overload of add is deprecated:\n\tadd(Number alpha, Tensor other)\n")
        assert done.stdout.startswith("3.0\n") and f"\n{name}:4 " in done.stdout, done.stdout


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.exit(3)",
        "import sys; sys.exit('a message')",
        "raise SystemExit",
        "def f():\n    1 / 0\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('x') from e",
        "x = (",
        "import nowhere",
        "import atexit; atexit.register(print, 'bye'); raise KeyboardInterrupt",
        "import sys; sys.excepthook = lambda t, v, tb: print('hook', t, v, tb.tb_lineno, tb.tb_next); 1 / 0",
        "import threading; t = threading.Timer(0.1, print, ['thread']); t.start(); 1 / 0",
        "import sys; print(sys.excepthook is sys.__excepthook__)",
    ],
)
def test_tracebacks_and_exit_codes_are_plain_python_s(tmp_path, body):
    (tmp_path / "program.py").write_text(body)
    same(tmp_path, "program.py")
    if "from e" in body:  # two tracebacks, each with the launcher's frames above it
        same(tmp_path, "-m", "program")


def test_a_missing_script_and_no_script(tmp_path):
    assert same(tmp_path, "nowhere.py").returncode == 2
    done = python(*LAUNCHER, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("usage: python -m torchlike.run SCRIPT")


def test_interrupt_ends_the_program_as_plain_python(tmp_path):
    write(
        tmp_path,
        {
            "program.py": """
        import os, signal, time
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            print("caught", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    """
        },
    )
    done = same(tmp_path, "program.py")
    assert done.returncode == -signal.SIGINT and done.stdout == "caught\n"
    assert done.stderr.startswith("Traceback (most recent call last):") and "torchlike" not in done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_alias_holds_in_worker_processes(tmp_path, method):
    printed = check(
        tmp_path,
        f"""
        import multiprocessing, sys
        import torch

        class Item:
            pass

        def work(item):
            import torch.nn.functional
            import torchlike
            assert type(item) is Item
            return torch is torchlike, torch.__version__, sys.argv[1:]

        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(1) as pool:
                print(pool.apply(work, (Item(),)))
        """,
        "--x",
    )
    assert printed == "(True, '2.13.0+torchlike', ['--x'])\n"


def test_the_alias_holds_in_programs_started_and_keeps_their_sitecustomize(tmp_path):
    write(
        tmp_path,
        {
            "site/sitecustomize.py": "import sys; sys.customized = True",
            "child.py": """
        import importlib.metadata, importlib.util, sys
        assert importlib.util.find_spec("torch") is not None
        assert importlib.metadata.version("torch") == "2.13.0+torchlike"
        assert "jax" not in sys.modules and sys.customized and not any("_children" in p for p in sys.path)
        import torch
        import torchlike
        print(torch is torchlike, torchlike._alias.install is torchlike.install)
    """,
            "program.py": """
        import os, subprocess, sys
        subprocess.run([sys.executable, "child.py"], check=True)
    """,
        },
    )
    done = python(
        *LAUNCHER, "program.py", cwd=tmp_path, PYTHONPATH=os.pathsep.join([str(ROOT), str(tmp_path / "site")])
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True True\n", "", 0)


def test_classes_say_that_they_are_torch_s(tmp_path):
    """Libraries ask a class for its module, and write its full name into files that PyTorch has to read."""
    program = tmp_path / "classes.py"
    program.write_text("""
import collections, importlib, pickle, typing
import torch
for name in ("nn", "nn.attention", "nn.utils.parametrize", "nn.parallel", "optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data", "autograd.function",
             "amp", "distributions", "distributions.constraints", "fx", "utils._pytree", "utils.checkpoint", "cuda.amp", "overrides"):
    for own, kind in sorted(vars(importlib.import_module(f"torch.{name}")).items()):
        if isinstance(kind, type) and kind.__module__.startswith("torch") and own[0] != "_" and own != "LinearCrossEntropyOptions":  # torch's module is not here
            print(name, own, kind)
            if "<locals>" not in kind.__qualname__:
                assert pickle.loads(pickle.dumps(kind)) is kind
layer = pickle.loads(pickle.dumps(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())))
print(layer, type(layer).__module__, typing.get_type_hints(torch.nn.Linear), typing.get_type_hints(torch.nn.Linear.__init__)["in_features"])
""")
    plain = python(program, cwd=tmp_path)
    under = python(*LAUNCHER, program, cwd=tmp_path)
    assert under.returncode == 0, under.stderr
    theirs, ours = plain.stdout.splitlines(), set(under.stdout.splitlines())
    shown = {line.partition(" <class")[0] for line in ours}
    assert [line for line in theirs if line not in ours and line.partition(" <class")[0] in shown] == []


def test_torch_is_called_torch(tmp_path):
    """Libraries compare `torch.__name__`, and name torch's older types and marks in annotations."""
    program = tmp_path / "named.py"
    program.write_text("""
import torch, torch.nn as nn
from torch.serialization import MAP_LOCATION
print(torch.jit.__name__, torch.nn.__name__, torch.optim.__name__)
print(torch.__name__, torch.futures.Future[torch.Tensor].__args__, torch.sparse.FloatTensor | torch.sparse.HalfTensor, torch.sparse.FloatTensor.layout,
      isinstance(torch.ones(1), torch.sparse.FloatTensor), issubclass(torch.jit.TracerWarning, Warning), torch.profiler.kineto_available())
def f(x):
    pass
print(torch.jit._overload(f) is f, isinstance(torch.compile(nn.Linear(1, 1), backend="eager"), torch._dynamo.OptimizedModule), torch.ScriptModule.__name__)
""")
    plain = python(program, cwd=tmp_path)
    under = python(*LAUNCHER, program, cwd=tmp_path)
    assert under.returncode == 0, under.stderr
    assert under.stdout == plain.stdout
