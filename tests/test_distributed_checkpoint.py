"""torch.distributed.checkpoint: folders written by one library and read by the other, and states under the model's own names."""
import importlib
import io
import pickle
import zipfile

import pytest


def parts(torch):
    return [importlib.import_module(f"{torch.__name__}.distributed.checkpoint{name}") for name in ("", ".state_dict", ".format_utils")]


def trained(torch, seed=0, steps=2, wrap=None):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4, bias=False), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    net = wrap(model) if wrap else model
    optimizer = torch.optim.AdamW([{"params": model[0].parameters(), "lr": 0.1}, {"params": [*model[1].parameters(), *model[2].parameters()]}], lr=0.01)
    for _ in range(steps):
        net(torch.arange(12.0).reshape(4, 3).sin()).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return net, optimizer


def plain(x):
    """Values without a library."""
    if hasattr(x, "tolist"):
        return str(x.dtype), tuple(x.shape), x.tolist()
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else x


def close(a, b, where=""):
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        return all(close(a[k], b[k], f"{where}.{k}") for k in a)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        return all(close(x, y, f"{where}.{i}") for i, (x, y) in enumerate(zip(a, b)))
    assert a == (pytest.approx(b, rel=1e-4, abs=1e-5) if isinstance(a, float) else b), where
    return True


def state(torch):
    model, optimizer = trained(torch)
    return {"model": model, "optim": optimizer, "step": 3, "name": "x", "list": [1, torch.ones(2)], "short": [1, 2], "pair": (1, 2.5), "empty": {},
            "half": torch.ones(2, dtype=torch.bfloat16), "part": torch.arange(10)[2:5], "turned": torch.arange(6.0).reshape(2, 3).t(),
            "deep": {7: torch.tensor(5), "a": {"b": [{"c": torch.zeros(1, dtype=torch.bool)}]}}, "none": None}


def blank(torch):
    made, (model, optimizer) = state(torch), trained(torch, seed=5, steps=1)
    return {**made, "model": model, "optim": optimizer, "step": 0, "name": "", "list": [0, torch.zeros(2)], "short": [], "pair": None,
            "half": torch.zeros(2, dtype=torch.bfloat16), "part": torch.zeros(3, dtype=torch.int64), "turned": torch.zeros(3, 2),
            "deep": {7: torch.tensor(0), "a": {"b": [{"c": torch.ones(1, dtype=torch.bool)}]}}, "none": 1}


def shown(made):
    return plain({**made, "model": made["model"].state_dict(), "optim": made["optim"].state_dict()})


@pytest.mark.parametrize("one_file", [True, False])
@pytest.mark.parametrize("direction", ["ours to theirs", "theirs to ours", "ours to ours"])
def test_both_ways(subject, oracle, tmp_path, direction, one_file):
    """What one library writes, the other reads."""
    writes, reads = {"ours to theirs": (subject, oracle), "theirs to ours": (oracle, subject), "ours to ours": (subject, subject)}[direction]
    saver, loader = parts(writes)[0], parts(reads)[0]
    saver.save(state(writes), storage_writer=saver.FileSystemWriter(tmp_path, single_file_per_rank=one_file))
    got = blank(reads)
    held = got["turned"]
    loader.load(got, checkpoint_id=tmp_path)
    assert close(shown(got), shown(state(reads)))
    assert got["turned"] is held


def test_metadata(subject, oracle, tmp_path):
    """The same entries, described alike, whoever wrote them and whoever reads."""
    def described(torch, about):
        return ({name: (type(x).__name__, *([str(x.size), str(x.properties), str(x.chunks)] if hasattr(x, "size") else []))
                 for name, x in about.state_dict_metadata.items()}, about.planner_data, about.version, sorted(map(str, about.storage_data)),
                [type(x).__name__ for x in about.storage_data.values()][:1], str(about.storage_meta.checkpoint_id))
    seen = []
    for torch in (subject, oracle):
        made = parts(torch)[0].save(state(torch), checkpoint_id=tmp_path)
        seen.append(described(torch, made))
        seen += [described(reads, parts(reads)[0].FileSystemReader(tmp_path).read_metadata()) for reads in (subject, oracle)]
    assert all(x == seen[0] for x in seen)


def test_blocks_of_many_ranks(subject, oracle, tmp_path):
    """A tensor that lies in several blocks is put together."""
    ours, theirs = parts(subject)[0], parts(oracle)[0]
    from torch.distributed.checkpoint import metadata as m
    whole, files, chunks, where = oracle.arange(15.0).reshape(5, 3), [], [], {}
    for k, (start, end) in enumerate([(0, 2), (2, 4), (4, 5)]):
        data = io.BytesIO()
        oracle.save(whole[start:end].clone(), data)
        files.append(data.getvalue())
        chunks.append(m.ChunkStorageMetadata(oracle.Size([start, 0]), oracle.Size([end - start, 3])))
        from torch.distributed.checkpoint.filesystem import _StorageInfo
        where[m.MetadataIndex("w", [start, 0], k)] = _StorageInfo(f"__{k}_0.distcp", 0, len(files[-1]))
        (tmp_path / f"__{k}_0.distcp").write_bytes(files[-1])
    about = theirs.Metadata({"w": m.TensorStorageMetadata(m.TensorProperties(), whole.size(), chunks)}, {"w": ("w",)}, where)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(about))
    got = {"w": subject.zeros(5, 3)}
    ours.load(got, checkpoint_id=tmp_path)
    assert got["w"].tolist() == whole.tolist()


def test_metadata_runs_nothing(subject, tmp_path):
    """A file that names functions is refused, and one that leads elsewhere too."""
    ours = parts(subject)[0]

    class Evil:
        def __reduce__(self):
            return exec, ("raise SystemExit",)
    (tmp_path / ".metadata").write_bytes(pickle.dumps({"a": Evil()}))
    with pytest.raises(pickle.UnpicklingError):
        ours.FileSystemReader(tmp_path).read_metadata()
    inner = tmp_path / "inner"
    ours.save({"a": 1}, checkpoint_id=inner)
    (inner / "__0_0.distcp").rename(tmp_path / "__0_0.distcp")
    about = (inner / ".metadata").read_bytes().replace(b"\x0e__0_0.distcp", b"\x0e__0_0.distcp")
    changed = about.replace(bytes([len("__0_0.distcp")]) + b"\x00\x00\x00__0_0.distcp", bytes([len("../__0_0.distcp")]) + b"\x00\x00\x00../__0_0.distcp")
    changed = changed.replace(bytes([len("__0_0.distcp")]) + b"__0_0.distcp", bytes([len("../__0_0.distcp")]) + b"../__0_0.distcp")
    start = changed.find(b"\x95")
    assert changed != about
    if start >= 0:  # the length of the pickle's frame
        length = int.from_bytes(changed[start + 1:start + 9], "little") + 3
        changed = changed[:start + 1] + length.to_bytes(8, "little") + changed[start + 9:]
    (inner / ".metadata").write_bytes(changed)
    with pytest.raises(ours.CheckpointException) as error:
        ours.load({"a": 0}, checkpoint_id=inner)
    assert "leads out of the checkpoint" in str(error.value)


ERRORS = {
    "no folder": lambda torch, d, p: d.load({"a": torch.ones(2)}, checkpoint_id=p / "nope"),
    "missing": lambda torch, d, p: d.load({"zzz": torch.ones(2)}, checkpoint_id=p / "there"),
    "size": lambda torch, d, p: d.load({"t": torch.ones(3)}, checkpoint_id=p / "there"),
    "kind": lambda torch, d, p: d.load({"t": 3}, checkpoint_id=p / "there"),
    "where to": lambda torch, d, p: d.save({"a": 1}),
    "where from": lambda torch, d, p: d.load({"a": 1}),
    "twice": lambda torch, d, p: d.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=p / "twice"),
    "there": lambda torch, d, p: d.save({"a": 1}, storage_writer=d.FileSystemWriter(p / "there", overwrite=False)),
    "local": lambda torch, d, p: d.save({"a": lambda: 1}, checkpoint_id=p / "local"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(subject, oracle, tmp_path, name):
    """The class of the exception, and of what is in it."""
    def facts(torch):
        d, place = parts(torch)[0], tmp_path / torch.__name__
        d.save({"t": torch.ones(2), "a": 1}, checkpoint_id=place / "there")
        try:
            ERRORS[name](torch, d, place)
        except BaseException as error:
            inner = [type(e).__name__ for e, _ in error.failures.values()] if hasattr(error, "failures") else str(error)
            texts = [str(e).replace(torch.__name__, "torch") for e, _ in error.failures.values()] if hasattr(error, "failures") else []
            return type(error).__name__, isinstance(error, Exception), inner, texts if name in ("missing", "size", "kind", "twice", "there") else []
    assert facts(subject) == facts(oracle)


def test_parts_of_a_state(subject, oracle, tmp_path):
    """Loading some entries; partial loads; states that are not opened; the older names; one file for all; in a thread."""
    def facts(torch):
        d, _, formats = parts(torch)
        place, out = tmp_path / torch.__name__, []
        d.save({"t": torch.ones(2), "step": 4, "deep": {"x": 1, "y": [torch.ones(1)]}}, checkpoint_id=place / "a")
        got = {"step": 0, "deep": {"x": 0}}
        d.load(got, checkpoint_id=place / "a")
        out.append(plain(got))
        got = {"t": torch.zeros(2), "other": 5}
        d.load(got, checkpoint_id=place / "a", planner=d.DefaultLoadPlanner(allow_partial_load=True))
        out.append(plain(got))
        d.save({"t": torch.ones(2), "deep": {"x": 1}}, checkpoint_id=place / "b", planner=d.DefaultSavePlanner(flatten_state_dict=False))
        got = {"t": torch.zeros(2)}
        d.load(got, checkpoint_id=place / "b", planner=d.DefaultLoadPlanner(flatten_state_dict=False))
        out.append(plain(got))
        d.save_state_dict({"t": torch.ones(2)}, d.FileSystemWriter(place / "c"), no_dist=True)
        got = {"t": torch.zeros(2)}
        d.load_state_dict(got, d.FileSystemReader(place / "c"), no_dist=True)
        out.append(plain(got))
        formats.dcp_to_torch_save(place / "a", place / "a.pt")
        out.append(plain(torch.load(place / "a.pt", weights_only=False)))
        formats.torch_save_to_dcp(place / "a.pt", place / "d")
        out.append(sorted(d.FileSystemReader(place / "d").read_metadata().state_dict_metadata))
        moving = torch.ones(2)
        future = d.async_save({"t": moving}, checkpoint_id=place / "e")
        moving.add_(1)
        future.result()
        got = {"t": torch.zeros(2)}
        d.load(got, checkpoint_id=place / "e")
        grown = torch.ones(2, requires_grad=True)
        d.load({"t": grown}, checkpoint_id=place / "a")
        return [*out, plain(got), grown.tolist(), grown.requires_grad]
    assert facts(subject) == facts(oracle)


def test_staging(subject, oracle, tmp_path):
    """How the copy is made that async_save writes: at once or in a thread, by PyTorch's stagers or a program's own."""
    def facts(torch):
        d, staging = parts(torch)[0], importlib.import_module(f"{torch.__name__}.distributed.checkpoint.staging")
        place, out = tmp_path / torch.__name__, []

        class Halving(staging.BlockingAsyncStager):
            def stage(self, state_dict):
                return {key: t / 2 for key, t in super().stage(state_dict).items()}
        options = [staging.StagingOptions(False, False, thread, False) for thread in (True, False)]
        for i, stager in enumerate((*map(staging.DefaultStager, options), staging.BlockingAsyncStager(), Halving())):
            moving = torch.ones(2)
            made = d.async_save({"t": moving}, checkpoint_id=place / str(i), async_stager=stager, async_checkpointer_type=saver(torch).AsyncCheckpointerType.THREAD)
            response = isinstance(made, saver(torch).AsyncSaveResponse)
            if response:
                out.append(made.staging_completion.result())
                made = made.upload_completion
            moving.add_(1)
            made.result()
            got = {"t": torch.zeros(2)}
            d.load(got, checkpoint_id=place / str(i))
            stager.synchronize_staging()
            stager.close()
            out.append((response, got["t"].tolist(), isinstance(stager, staging.AsyncStager), stager.should_synchronize_after_execute))
        return out
    assert facts(subject) == facts(oracle)
    with pytest.raises(NotImplementedError, match="PROCESS"):
        parts(subject)[0].async_save({}, checkpoint_id=tmp_path / "x", async_checkpointer_type=saver(subject).AsyncCheckpointerType.PROCESS)


def saver(torch):
    return importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict_saver")


def options(torch, **given):
    return parts(torch)[1].StateDictOptions(**given)


@pytest.mark.parametrize("given", [{}, {"cpu_offload": True}, {"full_state_dict": True}, {"full_state_dict": True, "cpu_offload": True},
                                   {"flatten_optimizer_state_dict": True}, {"ignore_frozen_params": True}], ids=str)
def test_states(subject, oracle, given):
    """Model and optimizers, by name, out and into another model, which then trains alike."""
    def facts(torch):
        s = parts(torch)[1]
        model, optimizer = trained(torch)
        if given.get("ignore_frozen_params"):
            model[0].weight.requires_grad_(False)
        if "flatten_optimizer_state_dict" in given:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        out = [plain(s.get_model_state_dict(model, options=options(torch, **given)))]
        states = s.get_state_dict(model, optimizer, options=options(torch, **given))
        out.append(plain(states))
        other, opt = trained(torch, seed=3, steps=0)
        if "flatten_optimizer_state_dict" in given:
            opt = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
        if given.get("ignore_frozen_params"):
            return out
        keys = s.set_state_dict(other, opt, model_state_dict=states[0], optim_state_dict=states[1], options=options(torch, **given))
        for net, o in ((model, optimizer), (other, opt)):
            net(torch.arange(12.0).reshape(4, 3).cos()).square().sum().backward()
            o.step()
        return [*out, str(keys), plain(other.state_dict()), plain(opt.state_dict()), plain(other.state_dict()) == plain(model.state_dict())]
    assert close(facts(subject), facts(oracle))


def test_names_without_wrappers(subject, oracle):
    """A compiled model's names are those of the model; frozen, missing and empty states."""
    def facts(torch):
        s, out = parts(torch)[1], []
        model, _ = trained(torch)
        outer = torch.nn.Sequential(torch.compile(model), torch.nn.Linear(2, 2))
        out.append(sorted(s.get_model_state_dict(outer)))
        values = {k: torch.full_like(v, 2) for k, v in s.get_model_state_dict(outer).items()}
        s.set_model_state_dict(outer, values)
        out.append(plain(model.state_dict()))
        out.append(sorted(s.get_optimizer_state_dict(outer, torch.optim.Adam(outer.parameters()))["state"]))
        for call in (lambda: s.set_model_state_dict(outer, {"1.weight": torch.ones(2, 2)}),
                     lambda: s.set_optimizer_state_dict(model, torch.optim.SGD(model.parameters(), lr=1.0), {}),
                     lambda: s.set_optimizer_state_dict(model, torch.optim.Adam(model.parameters()), {"state": {"a": {}}, "param_groups": []}),
                     lambda: s.get_model_state_dict(model, options=options(torch, broadcast_from_rank0=True)),
                     lambda: s.get_optimizer_state_dict(model, torch.optim.AdamW(model.parameters()), options=options(torch, flatten_optimizer_state_dict=True))):
            try:
                out.append(sorted(call()))
            except Exception as error:
                out.append((type(error).__name__, str(error).splitlines()[0]))
        return out
    ours, theirs = facts(subject), facts(oracle)
    assert ours == theirs


def test_files_are_torchs(subject, tmp_path):
    """Each entry is a whole file of torch.save."""
    parts(subject)[0].save({"t": subject.ones(2)}, checkpoint_id=tmp_path)
    assert zipfile.ZipFile(tmp_path / "__0_0.distcp").testzip() is None
    assert sorted(p.name for p in tmp_path.iterdir()) == [".metadata", "__0_0.distcp"]


def test_tensors_over_a_mesh(subject, tmp_path):
    """A DTensor is saved whole and loaded in place."""
    d, tensor = parts(subject)[0], importlib.import_module(f"{subject.__name__}.distributed.tensor")
    groups = importlib.import_module(f"{subject.__name__}.distributed")
    groups.init_process_group("gloo", store=groups.HashStore() if hasattr(groups, "HashStore") else None, rank=0, world_size=1)
    try:
        mesh = groups.init_device_mesh("cpu", (1,))
        saved, got = (tensor.distribute_tensor(x, mesh, [tensor.Shard(0)]) for x in (subject.arange(6.0).reshape(3, 2), subject.zeros(3, 2)))
        d.save({"w": saved}, checkpoint_id=tmp_path)
        d.load({"w": got}, checkpoint_id=tmp_path)
        assert got.to_local().tolist() == saved.to_local().tolist()
    finally:
        groups.destroy_process_group()


def test_a_checkpoint_that_is_replaced_is_whole_at_any_time(subject, tmp_path, monkeypatch):
    d, writer = parts(subject)[0], importlib.import_module(f"{subject.__name__}.distributed.checkpoint.filesystem")
    d.save({"a": subject.ones(3)}, checkpoint_id=tmp_path)

    def killed(*_):
        raise OSError("killed")
    with monkeypatch.context() as m:
        m.setattr(writer.os, "replace", killed)
        with pytest.raises(d.CheckpointException):
            d.save({"a": subject.zeros(3)}, checkpoint_id=tmp_path)
    got = {"a": subject.full((3,), 7.0)}
    d.load(got, checkpoint_id=tmp_path)
    assert got["a"].tolist() == [1.0] * 3
    d.save({"a": subject.zeros(3)}, checkpoint_id=tmp_path)
    d.load(got, checkpoint_id=tmp_path)
    assert got["a"].tolist() == [0.0] * 3 and len(list(tmp_path.iterdir())) == 2


def test_an_optimizers_state_before_its_first_step(subject, oracle):
    """What FSDP2's example calls before it fills a new optimizer's state from a checkpoint."""
    found = []
    for torch in (oracle, subject):
        init = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")._init_optim_state
        p = torch.nn.Parameter(torch.ones(3))
        out = []
        for made in (torch.optim.Adam([p], lr=0.1), torch.optim.SGD([p], lr=0.1, momentum=0.9), torch.optim.SGD([p], lr=0.1)):
            init(made)
            out += [plain(made.state_dict()), made.param_groups[0]["lr"], p.tolist(), p.grad is None]
        p.grad = torch.ones(3)
        init(late := torch.optim.Adam([p], lr=0.1))
        found.append([*out, dict(late.state), p.grad.tolist()])
    close(found[1], found[0])


@pytest.mark.parametrize("keys", [None, {"model"}, {"deep.a", "step"}, {"list.1", "optim.state"}])
@pytest.mark.parametrize("direction", ["forth", "back"])
def test_whole_checkpoints_into_an_empty_state(subject, oracle, tmp_path, direction, keys):
    """What lightning and accelerate merge the checkpoints of many ranks with."""
    writer, reader = (subject, oracle) if direction == "back" else (oracle, subject)
    model, optimizer = parts(writer)[1].get_state_dict(*trained(writer))
    parts(writer)[0].save({**state(writer), "model": model, "optim": optimizer}, checkpoint_id=tmp_path)
    made = []
    for torch in (oracle, reader):
        format_utils, loader = parts(torch)[2], importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict_loader")
        assert format_utils._load_state_dict is loader._load_state_dict
        made.append({})
        loader._load_state_dict(made[-1], storage_reader=parts(torch)[0].FileSystemReader(tmp_path), planner=format_utils._EmptyStateDictLoadPlanner(keys),
                                no_dist=True)
    assert close(plain(made[0]), plain(made[1])) and made[0]
    with pytest.raises(parts(reader)[0].CheckpointException, match="not state_dict"):
        loader._load_state_dict({"a": 1}, parts(reader)[0].FileSystemReader(tmp_path), planner=format_utils._EmptyStateDictLoadPlanner(), no_dist=True)
