"""Modules of settings beside PyTorch's: which there are, what they are at first, and what happens to names that there are not."""
import subprocess
import sys
import threading
import warnings
from importlib import import_module
from unittest import mock

import pytest
from same import same

MODULES = ["_dynamo.config", "_inductor.config", "_functorch.config", "compiler.config", "fx.experimental._config", "distributed.config"]
OF_THE_MACHINE = {"base_dir", "debug_dir_root", "compile_threads", "cutlass.cutlass_dir", "cuda.cutlass_dir", "xpu.cutlass_dir"}
CALLS = """
setattr(c,"nothing",1) c.nothing hasattr(c,"nothing") c.patch(nothing=1).__enter__() c.patch({"a":1},2) c.patch("a") c.patch("a",1,b=2) c.patch(None,1)
c.to_dict()==c.get_config_copy() c.shallow_copy_dict()==c.get_config_copy() c.load_config({"nothing":3}) c.load_config({"nothing":3})
c.load_config(c.save_config()) c.get_type("nothing") delattr(c,"nothing")
""".split()


def outcome(function, name):
    """What a call gives or raises, and its warnings, with torch's name for the library."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = function()
        except Exception as error:  # whichever class it is, it is the result
            found = f"{type(error).__name__}: {error}"
    return str(found).replace(name, "torch"), [(w.category.__name__, str(w.message).replace(name, "torch")) for w in said]


@pytest.mark.parametrize("module", MODULES)
@same
def test_settings_are_those_of_pytorch(torch, module):
    found = import_module(f"{torch.__name__}.{module}").get_config_copy()
    return {name: sorted(x) if isinstance(x, set) else x for name, x in sorted(found.items()) if name not in OF_THE_MACHINE | {"TYPE_CHECKING"}}, OF_THE_MACHINE & {*found}


@pytest.mark.parametrize("module", MODULES)
@same
def test_names_that_there_are_not(torch, module):
    c = import_module(f"{torch.__name__}.{module}")
    return [outcome(lambda call=call: eval(call, {"c": c}), torch.__name__) for call in CALLS]


@same
def test_settings_of_one_group(torch):
    c = import_module(f"{torch.__name__}._inductor.config")
    calls = [lambda: setattr(c.triton, "nothing", 1), lambda: c.triton.nothing, lambda: c.triton.cudagraphs]
    found = [outcome(f, torch.__name__) for f in calls]
    with c.patch({"triton.cudagraphs": True, "max_autotune": True}):
        found.append((c.triton.cudagraphs, c.max_autotune, c._is_default("triton.cudagraphs"), getattr(c, "triton.cudagraphs")))
        with c.patch("triton.cudagraphs", False), mock.patch.object(c.triton, "unique_kernel_names", 7):
            found.append((c.triton.cudagraphs, c.triton.unique_kernel_names))
    return found, c.triton.cudagraphs, c.max_autotune, c.triton.unique_kernel_names, sorted(c.save_config_portable())


@same
def test_settings_that_are_others_names(torch):
    c, compiler = (import_module(f"{torch.__name__}.{name}.config") for name in ("_dynamo", "compiler"))
    found = []
    with c.patch(recompile_limit=13), compiler.patch("verbose", True):
        found.append((c.cache_size_limit, compiler.recompile_limit, c.verbose))
        with c.patch(cache_size_limit=5), mock.patch(f"{torch.__name__}._dynamo.config.verbose", 7):
            found.append((c.recompile_limit, compiler.recompile_limit, compiler.verbose))
    return found, c.recompile_limit, c.verbose


@same
def test_settings_of_a_thread_and_of_a_decorated_function(torch):
    c = import_module(f"{torch.__name__}._functorch.config")
    seen = []

    @c.patch(cse=7)
    def look(again=True):
        seen.append(c.cse)
        thread = threading.Thread(target=lambda: seen.append(c.cse))
        thread.start()
        thread.join()
        if again:
            look(False)
    look()
    return seen, c.cse


@same
def test_deprecated_settings_and_defaults_that_are_written_into(torch):
    c = import_module(f"{torch.__name__}._dynamo.config")
    c.load_config({"inline_inbuilt_nn_modules": True})  # warned of once in a process
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = c.inline_inbuilt_nn_modules
    before = c._is_default("reorderable_logging_functions"), c._is_default("verbose")
    c.reorderable_logging_functions.add(print)
    try:
        lines = [line.replace(torch.__name__, "torch") for line in c.codegen_config().splitlines() if "logging_functions" in line]
        return kept, before, c._is_default("reorderable_logging_functions"), lines, c.get_type("recompile_limit").__name__
    finally:
        c.reorderable_logging_functions.clear()


def test_deprecated_settings_warn_once():
    from types import ModuleType

    from torchlike.utils._config_module import ConfigModule, install_config_module
    module = ModuleType("torchlike.some")
    module.a, module.b = 1, [2]
    install_config_module(module, deprecated={"a": "does nothing"})
    with pytest.warns(FutureWarning, match="torch.some.a is deprecated and does nothing. It will be removed in a future version of PyTorch."):
        assert module.a == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.a = 3
    assert isinstance(module, ConfigModule) and (module.a, module.b) == (3, [2])


def test_disable_is_what_compiled_functions_ask():
    import torchlike
    calls = []
    f = torchlike.compile(lambda x: calls.append(1) or x + 1)
    with torchlike._dynamo.config.patch(disable=True):
        assert not torchlike._dynamo.config._is_default("disable") and torchlike._compile.stance.disabled
        f(torchlike.ones(1))
    assert not torchlike._compile.stance.disabled and calls


def test_scripts_import_them_by_their_names(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("".join(f"import torch.{name} as module\nassert module.get_config_copy(), module.__spec__.name\n" for name in MODULES))
    done = subprocess.run([sys.executable, "-m", "torchlike.run", script], capture_output=True, text=True)
    assert not done.returncode, done.stderr
