"""torch.distributed.checkpoint: plans, and planners and storages of a program's own, beside real torch."""
import dataclasses
import importlib
import io
import tempfile
import warnings

from same import same

warnings.filterwarnings("ignore", message="torch.distributed is disabled")


def _checkpoint(torch):
    return importlib.import_module(f"{torch.__name__}.distributed.checkpoint")


def _part(torch, name):
    return importlib.import_module(f"{torch.__name__}.distributed.checkpoint.{name}")


def shown(x):
    """A plan or metadata as plain values."""
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return type(x).__name__, {f.name: shown(getattr(x, f.name, None)) for f in dataclasses.fields(x) if f.name not in ("usable", "storage_meta")}
    if isinstance(x, dict):
        return {str(k): shown(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [shown(v) for v in x]
    return x if isinstance(x, (int, float, str, type(None))) else str(x).split(".", 1)[-1]


def words(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except BaseException as raised:
        return type(raised).__name__, str(raised).splitlines()[0][:90]
    return "no error"


def _state(torch):
    return {"a": torch.arange(6.0).reshape(2, 3), "b": [1, 2], "c": torch.ones(4, dtype=torch.int64), "d": torch.tensor(2.5)}


@same
def test_default_plans(torch):
    planner = _part(torch, "default_planner")
    plan = planner.create_default_local_save_plan(_state(torch), True)
    plans, metadata = planner.create_default_global_save_plan([plan])
    load = planner.create_default_local_load_plan(_state(torch), metadata)
    partly = planner.create_default_local_load_plan({**_state(torch), "e": 1}, metadata, strict=False)
    return (shown(plan), shown(plans), shown(metadata), shown(load), len(partly.items), [i.tensor_storage_size() for i in plan.items],
            words(planner.create_default_local_load_plan, {"e": torch.ones(1)}, metadata), words(planner.create_default_local_load_plan, {"a": torch.ones(1)}, metadata),
            words(planner.create_default_local_load_plan, {"a": 3}, metadata)[0])


@same
def test_blocks_that_meet(torch):
    about, helpers = _part(torch, "metadata"), _part(torch, "planner_helpers")
    size = torch.Size
    saved = about.TensorStorageMetadata(about.TensorProperties.create_from_tensor(torch.empty(4, 16)), size([4, 16]), [
        about.ChunkStorageMetadata(size([0, 0]), size([4, 8])), about.ChunkStorageMetadata(size([0, 8]), size([4, 8]))])
    mine = [about.ChunkStorageMetadata(size([1, 4]), size([2, 7])), about.ChunkStorageMetadata(size([0, 0]), size([4, 2]))]
    return sorted(map(str, map(shown, helpers.create_read_items_for_chunk_list("x", saved, mine))))


@same
def test_items_that_several_ranks_have(torch):
    """Each is one rank's in the end."""
    planner = _checkpoint(torch).DefaultSavePlanner
    found = []
    for lowest in (False, True):
        makers = [planner(dedup_save_to_lowest_rank=lowest) for _ in range(3)]
        for maker in makers:
            maker.set_up_planner(_state(torch), None, True)
        plans, metadata = makers[0].create_global_plan([maker.create_local_plan() for maker in makers])
        found.append((sorted(item.index.fqn for plan in plans for item in plan.items), len(plans), shown(metadata)))
        if lowest:
            found.append([len(plan.items) for plan in plans])
    return found


@same
def test_planners_of_ones_own(torch):
    """Names change on their way to the checkpoint and back, and tensors are halved in it."""
    c, read = _checkpoint(torch), []

    class Save(c.DefaultSavePlanner):
        def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
            super().set_up_planner({f"old.{k}": v for k, v in state_dict.items()}, storage_meta, is_coordinator)

        def transform_object(self, write_item, object):
            made = super().transform_object(write_item, object)
            return made if isinstance(made, io.BytesIO) else made / 2 if made.is_floating_point() else made

    class Load(c.DefaultLoadPlanner):
        def lookup_tensor(self, index):
            read.append(index.fqn)
            return super().lookup_tensor(index)

        def commit_tensor(self, read_item, tensor):
            read.append((read_item.dest_index.fqn, tuple(tensor.shape)))

        def load_bytes(self, read_item, value):
            read.append((read_item.dest_index.fqn, torch.load(value)))
            value.seek(0)
            super().load_bytes(read_item, value)

    with tempfile.TemporaryDirectory() as folder:
        c.save(_state(torch), checkpoint_id=folder, planner=Save())
        state = {"old": {"a": torch.zeros(2, 3), "b": None, "d": torch.tensor(0.0)}}
        c.load(state, checkpoint_id=folder, planner=Load())
        whole = {}
        importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict_loader")._load_state_dict(
            whole, c.FileSystemReader(folder), planner=_part(torch, "default_planner")._EmptyStateDictLoadPlanner(keys={"old"}), no_dist=True)
    return state, sorted(map(str, read)), whole


@same
def test_storage_of_ones_own(torch):
    """A checkpoint in memory: which step follows which, and what is in it."""
    c, steps, kept = _checkpoint(torch), [], {}
    storage = _part(torch, "storage")
    future = importlib.import_module(f"{torch.__name__}.futures").Future

    def done(value):
        made = future()
        made.set_result(value)
        return made

    class Writer(c.StorageWriter):
        def reset(self, checkpoint_id=None):
            steps.append(("reset", checkpoint_id))

        def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
            steps.append(("set up", is_coordinator))

        def prepare_local_plan(self, plan):
            steps.append(("local", len(plan.items)))
            return plan

        def prepare_global_plan(self, plans):
            steps.append(("global", len(plans)))
            return plans

        def write_data(self, plan, planner):
            results = []
            for item in plan.items:
                data = planner.resolve_data(item)
                kept[item.index] = data.getvalue() if isinstance(data, io.BytesIO) else data.detach().clone()
                results.append(storage.WriteResult(item.index, 1, item.index.fqn))
            return done(results)

        def finish(self, metadata, results):
            kept["metadata"] = metadata
            steps.append(("finish", sorted(r.storage_data for r in results[0])))

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id):
            return True

    class Reader(c.StorageReader):
        def reset(self, checkpoint_id=None):
            steps.append(("reset", checkpoint_id))

        def read_metadata(self, *args, **kwargs):
            return kept["metadata"]

        def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
            steps.append(("set up", is_coordinator))

        def prepare_local_plan(self, plan):
            return plan

        def prepare_global_plan(self, plans):
            return plans

        def read_data(self, plan, planner):
            for item in plan.items:
                data = kept[item.storage_index]
                if isinstance(data, bytes):
                    planner.load_bytes(item, io.BytesIO(data))
                else:
                    planner.resolve_tensor(item).copy_(data)
            return done(None)

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id):
            return True

    c.save(_state(torch), checkpoint_id="here", storage_writer=Writer())
    state = {"a": torch.zeros(2, 3), "b": None, "c": torch.zeros(4, dtype=torch.int64)}
    c.load(state, checkpoint_id="here", storage_reader=Reader())
    return steps, state, words(c.StorageWriter)[0], words(c.SavePlanner)[0]


@same
def test_a_checkpoint_that_lacks_something(torch):
    c = _checkpoint(torch)
    with tempfile.TemporaryDirectory() as folder:
        c.save({"net": torch.nn.Linear(2, 2)}, checkpoint_id=folder)
        net = torch.nn.Linear(2, 2)
        net.more = torch.nn.Parameter(torch.ones(2))
        c.load({"net": net}, checkpoint_id=folder, planner=c.DefaultLoadPlanner(allow_partial_load=True))
        return net.more.detach(), words(c.load, {"net": net}, checkpoint_id=folder)[0]
