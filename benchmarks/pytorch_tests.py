"""PyTorch's own test files, run by real torch and by torchlike: what the one passes and the other does not.

    python benchmarks/pytorch_tests.py FOLDER test_indexing.py nn/test_pooling.py ... [-k EXPRESSION] [--out benchmarks/results/pytorch_tests.md]

FOLDER is the `test` folder of a checkout of PyTorch (of any age: only what the installed torch passes counts). `torch.testing._internal`
comes from the installed wheel. It imports many private names; those that torchlike lacks are made up, as objects that do nothing,
so a test that needs one fails by itself. Tests of `torch._refs`, where PyTorch writes its operations down a second time, are left out.
With `--library`, FOLDER is a checkout of a library that stands on PyTorch, with tests and settings of its own (its conftest.py, too), each of FILES
a file or folder in it, and nothing is made up.
Both libraries run each file in a process of its own, on the CPU, every test for at most `--seconds`. Results of a file are kept in
`--keep` (a JSON line per test), for a closer look.
"""
from __future__ import annotations

import argparse
import collections
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import types
import zlib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
LIBRARIES = ("torch", "torchlike")
SLOW_SECONDS, SLOW_TIMES = 3, 5  # a test is called slow past this many seconds more than so many times torch's
FROM_THE_WHEEL = ("torch.testing._internal", "torch.testing._comparison", "torch.testing._utils", "torch.utils._import_utils", "torch._utils_internal",
                  "torch.masked._wheel_ops", *(f"torch.masked.maskedtensor.{part}" for part in ("unary", "binary", "reductions")))  # the last: lists of names


# -- what runs within pytest (this file is its plugin): a time limit, and a line per test

if os.environ.get("PYTORCH_TESTS_MODULE") == "" and os.environ["PYTORCH_TESTS_LIBRARY"] == "torchlike":
    sys.path.insert(0, str(HERE.parent.parent))  # before a library's conftest.py
    importlib.import_module("torchlike").install()


class TimeUp(BaseException):
    """Past a test's seconds. No Exception: tests catch those."""


def pytest_configure(config):
    if "PYTORCH_TESTS_LIBRARY" not in os.environ:
        return
    if os.environ["PYTORCH_TESTS_MODULE"]:
        prepare()
    config.results = open(os.environ["PYTORCH_TESTS_RESULTS"], "w")


def pytest_collection_modifyitems(config, items):
    if "PYTORCH_TESTS_LIBRARY" in os.environ:  # by the name's checksum, so that both libraries and all runs take the same
        every, offset, taken, left = int(os.environ["PYTORCH_TESTS_EVERY"]), int(os.environ["PYTORCH_TESTS_OFFSET"]), [], []
        for item in items:
            (taken if "_refs" not in item.name and zlib.crc32(name_of(item).encode()) % every == offset else left).append(item)
        config.hook.pytest_deselected(items=left)
        items[:] = taken


def name_of(item) -> str:
    if not os.environ["PYTORCH_TESTS_MODULE"]:
        return item.nodeid
    return item.nodeid.partition("::")[2].replace("torchlike_nn", "nn")  # classes of modules are called after their package


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    def late(*_):
        raise TimeUp
    signal.signal(signal.SIGALRM, late)
    signal.alarm(int(os.environ["PYTORCH_TESTS_SECONDS"]))
    before = time.process_time()
    yield
    signal.alarm(0)
    item.processor_seconds = round(time.process_time() - before, 2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when != "call" and report.outcome == "passed":
        return
    why = where = ""
    if report.outcome == "failed" and call.excinfo:
        said = str(call.excinfo.value)
        why = f"{call.excinfo.typename}: {said if len(said) < 600 else said[:250] + ' ... ' + said[-350:]}"  # another process's error ends with its own words
        where = " < ".join(f"{Path(str(e.path)).name}:{e.lineno + 1}" for e in reversed(call.excinfo.traceback[-6:]))
    seconds = getattr(item, "processor_seconds", 0)
    item.config.results.write(json.dumps({"test": name_of(item), "outcome": report.outcome, "why": why, "where": where, "seconds": seconds}) + "\n")
    item.config.results.flush()


# -- torchlike in torch's place, with the wheel's `torch.testing._internal`

def made_up(owner, name):
    if name == "__all__":
        return []
    if name.startswith("__"):
        raise AttributeError(name)
    return MadeUp


class MadeUpType(type):
    __getattr__ = made_up

    def __iter__(cls): return iter(())
    def __or__(cls, other): return cls
    def __ror__(cls, other): return other
    def __radd__(cls, other): return other


class MadeUp(metaclass=MadeUpType):
    """Stands for a private name of PyTorch: a class, a decorator, a context, a number, a flag that is off."""
    def __new__(cls, *args, **kwargs): return args[0] if len(args) == 1 and isinstance(args[0], types.FunctionType) else object.__new__(cls)
    def __init__(self, *args, **kwargs): pass
    def __call__(self, *args, **kwargs): return args[0] if len(args) == 1 and callable(args[0]) else self
    def __bool__(self): return False
    def __int__(self): return 0
    def __float__(self): return 0.0
    def __iter__(self): return iter(())
    def __enter__(self): return self
    def __exit__(self, *error): return False
    def __lt__(self, other): return False
    __gt__ = __le__ = __ge__ = __lt__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MadeUp()


class MadeUpModule(types.ModuleType):
    __getattr__ = made_up


class Wheel(importlib.abc.MetaPathFinder):
    """Finds `torch.testing._internal` and what it stands on in the installed wheel."""

    def __init__(self, folder: Path):
        self.folder = folder

    def find_spec(self, name, path, target=None):
        if not name.startswith(FROM_THE_WHEEL):
            return None
        place = self.folder.joinpath(*name.replace("_wheel_ops", "_ops").split(".")[1:])
        if place.is_dir():
            return importlib.util.spec_from_file_location(name, place / "__init__.py", submodule_search_locations=[str(place)])
        if name.endswith(".annotated_fn_args"):
            return importlib.util.spec_from_file_location(name, loader=FunctionArguments(name, f"{place}.py"))
        return importlib.util.spec_from_file_location(name, place.with_suffix(".py")) if place.with_suffix(".py").is_file() else None


class FunctionArguments(importlib.machinery.SourceFileLoader):
    """The wheel's table of the arguments of functions, those that are here: by the function itself, which is asked for as `torch.<name>`."""

    def get_code(self, name):
        text = self.get_data(self.path).decode().replace("torch._C._VariableFunctions.", "torch.")
        text = re.sub(r"(?m)^    (torch[\w.]+): (\[.*\]),$", r"    **at(lambda: \1, \2),", text)
        return self.source_to_code(_AT + text, self.path)


_AT = """def at(function, arguments):
    try:
        return {function(): arguments}
    except AttributeError:
        return {}


"""


class TestFile(importlib.machinery.SourceFileLoader):
    """The tests' own file. `super(self.__class__, self)` never ends where a test class is derived from, as the wheel's `instantiate_device_type_tests` does.
    functorch's tests hold that the wheel knows all operations for which they make exceptions, and that HigherOrderOperator is no abstract class; it is
    younger."""

    def get_code(self, name):
        text = self.get_data(self.path).replace(b"super(self.__class__, self)", b"super()").replace(b"assert len(matching_opinfos) > 0,", b"assert True,")
        text = text.replace(b'HigherOrderOperator("mysum")', b'type("Sum", (HigherOrderOperator,), {"__call__": lambda *a, **k: HigherOrderOperator.__call__(*a, **k)})("mysum")')
        text = text.replace(b"torch.ops.load_library(str(lib_file_path))", b"pass")  # test_fx.py's, for a few of its tests
        one = b"assert len(matching_opinfos) == 1,"
        return self.source_to_code(text.replace(one, b"if not matching_opinfos: continue\n        " + one), self.path)


class TestFiles(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in (os.environ["PYTORCH_TESTS_MODULE"], "common_utils"):
            return None
        place = next((p for p in (Path(folder, f"{name}.py") for folder in sys.path) if p.is_file()), None)
        return place and importlib.util.spec_from_file_location(name, place, loader=TestFile(name, str(place)))


def prepare() -> None:
    sys.meta_path.insert(0, TestFiles())
    if os.environ["PYTORCH_TESTS_LIBRARY"] == "torchlike":
        become_torch()
    importlib.import_module("torch")
    for module, decorator, of in (("common_device_type", "ops", "op_list"), ("common_utils", "parametrize", "arg_values")):
        import_making_up(f"torch.testing._internal.{module}")
        allow_none(getattr(sys.modules[f"torch.testing._internal.{module}"], decorator), of)
    if os.environ.get("PYTORCH_TESTS_FORK"):
        case = import_making_up("torch.testing._internal.common_distributed").MultiProcessTestCase
        case._spawn_processes = lambda self: self._start_processes(multiprocessing.get_context("fork").Process)
    import_making_up(os.environ["PYTORCH_TESTS_MODULE"])
    scripting = sys.modules.get("torch.testing._internal.jit_utils")
    if scripting is not None and os.environ["PYTORCH_TESTS_LIBRARY"] == "torchlike":  # what it does around each test concerns the compiler only
        scripting.clear_class_registry = scripting.JitTestCase.setHooks = scripting.JitTestCase.clearHooks = lambda *_: None


def allow_none(decorator: type, of: str) -> None:
    """Tests for each of a list, which may be empty: of what is made up, or all of them of `torch._refs`."""
    tests = decorator._parametrize_test

    def tests_of_list(self, *args, **kwargs):
        values = list(getattr(self, of))
        setattr(self, of, values)
        return tests(self, *args, **kwargs) if values else iter(())
    decorator._parametrize_test = tests_of_list


def become_torch() -> None:
    wheel = Path(os.environ["PYTORCH_TESTS_WHEEL"])
    sys.path.insert(0, str(HERE.parent.parent))
    import torchlike
    torchlike.install()
    import torch
    import torch._dynamo
    import torch._ops
    import torch.nn.functional
    sys.meta_path.insert(0, Wheel(wheel))
    sys.modules.pop("torch.testing._utils", None)
    torch.testing._utils = importlib.import_module("torch.testing._utils")
    # What is asked for a value while `torch.testing._internal` is imported; everything else may be made up.
    torch._C._TorchFunctionState = types.SimpleNamespace(ENABLED=0, DISABLED=1, ALL_DISABLED=2)
    for name, value in {"_DisableFuncTorch": MadeUp, "_len_torch_function_stack": lambda: 0, "_get_torch_function_state": lambda: 0,
                        "_set_torch_function_state": lambda state: None, "_get_privateuse1_backend_name": lambda: "privateuseone"}.items():
        setattr(torch._C, name, value)
    torch._C._set_print_stack_traces_on_fatal_signal = lambda on: None
    torch._C._debug_only_are_vmap_fallback_warnings_enabled = torch._C._functorch._is_vmap_fallback_enabled = lambda: False
    torch._C._debug_only_display_vmap_fallback_warnings = torch._C._functorch._set_vmap_fallback_enabled = lambda on: None
    torch.distributed.Backend.register_backend = classmethod(lambda cls, name, *_, **__: setattr(cls, name.upper(), name))  # of its own, multi_threaded_pg
    torch.distributed.Backend.FAKE = "fake"
    quantized = types.ModuleType("torch.backends.quantized")
    quantized.supported_engines, quantized.engine = ["none"], "none"
    sys.modules["torch.backends.quantized"] = torch.backends.quantized = quantized
    torch._utils._is_privateuse1_backend_available = lambda: False
    torch._dynamo.config.compiled_autograd = torch._dynamo.config.caching_precompile = False
    for key in "AutogradCPU AutogradCUDA AutogradMPS AutogradXPU FuncTorchBatched Functionalize Autograd".split():
        if not hasattr(torch._C.DispatchKey, key):
            setattr(torch._C.DispatchKey, key, MadeUp)
    masked = importlib.import_module("torch.masked.maskedtensor.core")  # how its tests compare
    masked._tensors_match = lambda a, b, exact=True, rtol=1e-5, atol=1e-8: (
        a.layout == b.layout and a.dtype == b.dtype and (torch.equal(a, b) if exact else torch.allclose(a, b, rtol, atol, equal_nan=True)))
    masked._masks_match = lambda a, b: not (masked.is_masked_tensor(a) and masked.is_masked_tensor(b)) or torch.equal(a.get_mask(), b.get_mask())
    import torch.func
    own = importlib.import_module("torch._functorch.eager_transforms")
    transforms = sys.modules["torch._functorch.eager_transforms"] = torch._functorch.eager_transforms = MadeUpModule("torch._functorch.eager_transforms")
    transforms.__dict__.update({name: getattr(torch.func, name) for name in torch.func.__all__}, _wrap_tensor_for_grad=own._wrap_tensor_for_grad)
    transforms._as_tuple = lambda x: x if isinstance(x, tuple) else (x,)  # functorch/test_ops.py makes its references with it
    for name in "_canonical_dim", "_input_mask", "_output_mask", "_where":  # what its tests compare with, in operations that are tested
        setattr(torch.masked, name, lambda *args, name=name, **kwargs: getattr(import_making_up("torch.masked._wheel_ops"), name)(*args, **kwargs))
    operations = type(torch.ops.aten)
    known = operations.__getattr__

    def known_or_made_up(self, name):
        try:
            return known(self, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return MadeUp
    operations.__getattr__ = known_or_made_up


def import_making_up(name: str) -> types.ModuleType:
    """Import a module; a name that its import asks for and that is not there is made up, and the import begins again."""
    for _ in range(300):
        try:
            return importlib.import_module(name)
        except (ImportError, AttributeError) as error:
            if module := re.match(r"No module named '([\w.]+)'", str(error)):
                missing = module[1]
                made = MadeUpModule(missing)
                made.__path__ = []
                sys.modules[missing] = made
            elif names := re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error)):
                missing, made = f"{names[2]}.{names[1]}", MadeUp
            elif names := re.match(r"module '([\w.]+)' has no attribute '(\w+)'", str(error)):
                missing, made = f"{names[1]}.{names[2]}", MadeUp
            else:
                raise
            owner, _, leaf = missing.rpartition(".")
            if owner in sys.modules:
                setattr(sys.modules[owner], leaf, made)
    raise ImportError(f"{name} asks for more than 300 names that are not here")


STARTED_BY_TESTS = """import sys
if "pytest" not in sys.orig_argv:
    import torchlike
    torchlike.install()
    if "--multiprocessing-fork" in sys.orig_argv:
        import pytorch_tests
        pytorch_tests.prepare()
"""  # sitecustomize.py: processes that tests start have torchlike for torch, too


# -- what starts pytest, and compares

def run(folder: Path, file: str, library: str, options: argparse.Namespace) -> dict[str, dict]:
    results = options.keep / f"{file.removesuffix('.py').replace('/', '.')}.{library}.jsonl"
    if not (library in options.again and results.exists()):
        place = folder / file
        where = folder if options.library else place.parent
        started = options.keep / "started"
        started.mkdir(exist_ok=True)
        (started / "sitecustomize.py").write_text(STARTED_BY_TESTS)
        environment = os.environ | {
            "PYTORCH_TESTS_LIBRARY": library, "PYTORCH_TESTS_MODULE": "" if options.library else place.stem, "PYTORCH_TESTS_RESULTS": str(results.resolve()),
            "PYTORCH_TESTS_SECONDS": str(options.seconds), "PYTORCH_TESTS_EVERY": str(options.every), "PYTORCH_TESTS_OFFSET": str(options.offset),
            "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu", "OMP_NUM_THREADS": "1", "PYTORCH_TESTS_FORK": "1" if options.fork else "",
            # Not a library's folders of tests, which pytest puts there as it needs them: one may be called `onnx`.
            "PYTHONPATH": os.pathsep.join(map(str, (folder, HERE.parent) if options.library else (place.parent, folder, HERE.parent)))}
        if library == "torchlike" and not options.library:
            environment["PYTHONPATH"] += os.pathsep + os.pathsep.join(map(str, (HERE.parent.parent, started.resolve())))
            environment["PYTORCH_TESTS_WHEEL"] = str(Path(importlib.util.find_spec("torch").origin).parent)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "pytorch_tests", "-p", "no:cacheprovider", "-p", "no:warnings", "--tb=no"]
        command += [file] if options.library else ["--noconftest", "-o", "addopts=", "--rootdir", str(where), place.name]
        with open(results.with_suffix(".log"), "w") as log:
            try:
                subprocess.run(command + (["-k", options.k] if options.k else []), cwd=where, env=environment,
                               stdout=log, stderr=subprocess.STDOUT, timeout=options.limit)
            except subprocess.TimeoutExpired:
                print(f"{file}: {library} was stopped after {options.limit} s")
    found: dict[str, dict] = {}
    for line in results.read_text().splitlines() if results.exists() else ():
        result = json.loads(line)
        before = found.setdefault(result["test"], result)
        if before["outcome"] == "passed" or result["outcome"] == "failed":  # a test that fails in the end has failed
            found[result["test"]] = result
    if not found:
        print(f"{file}: {library} ran nothing, see {results.with_suffix('.log')}")
    return found


def compare(file: str, there: dict, here: dict) -> str:
    """Prints what fails here only, by its error, and what is slow; a row of the table."""
    passed = [test for test, result in there.items() if result["outcome"] == "passed" and "_refs" not in test]
    failed = [test for test in passed if test in here and here[test]["outcome"] == "failed"]
    groups = collections.defaultdict(list)
    for test in failed:
        groups[here[test]["why"][:160].replace("\n", " ")].append(test)
    for why, tests in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"  [{len(tests)}] {why}\n      {'  '.join(tests[:4])}\n      {here[tests[0]]['where']}")
    for test in passed:
        if test in here and here[test].get("seconds", 0) > SLOW_SECONDS + SLOW_TIMES * there[test].get("seconds", 0):
            print(f"  slow: {there[test].get('seconds', 0)} s -> {here[test]['seconds']} s  {test}")
    unreached = sum(test not in here for test in passed)
    skipped = sum(test in here and here[test]["outcome"] == "skipped" for test in passed)
    return f"| {file} | {len(passed)} | {len(passed) - len(failed) - unreached - skipped} | {len(failed)} | {skipped} | {unreached} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--library", action="store_true", help="FOLDER is a library's checkout")
    parser.add_argument("--fork", action="store_true", help="fork the processes of distributed tests: to spawn four takes longer than what they test")
    parser.add_argument("-k", help="pytest's choice of tests")
    parser.add_argument("--every", type=int, default=1, help="take only one of so many tests")
    parser.add_argument("--offset", type=int, default=0, help="which one of these: 0, as the tables say, or up to --every - 1")
    parser.add_argument("--seconds", type=int, default=30, help="of one test")
    parser.add_argument("--limit", type=int, default=1800, help="seconds of one file")
    parser.add_argument("--keep", type=Path, default=Path("/tmp/pytorch_tests"))
    parser.add_argument("--again", nargs="+", default=[], choices=LIBRARIES, help="take results of an earlier run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    rows = ["| file | torch passes | torchlike passes of these | fails | skips | not reached |", "|---|---|---|---|---|---|"]
    for file in options.files:
        rows.append(compare(file, *(run(options.folder.resolve(), file, library, options) for library in LIBRARIES)))
        print(rows[-1], flush=True)
    if options.out:
        from environment import describe
        counts = [sum(int(row.split("|")[k]) for row in rows[2:]) for k in range(2, 7)]
        rows.append("| all | " + " | ".join(map(str, counts)) + " |")
        options.out.write_text(f"{__doc__}\n{describe()}\n\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
