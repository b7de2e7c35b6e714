"""Checkpoints in files of safetensors: the same files as torch writes, both ways."""
import importlib
import json
import warnings

import pytest

warnings.simplefilter("ignore")


def parts(torch):
    return importlib.import_module(f"{torch.__name__}.distributed.checkpoint"), importlib.import_module(f"{torch.__name__}.distributed.checkpoint.hf_storage")


def state(torch, fill=None, floats=False):
    made = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2], dtype=torch.int64), "c": torch.ones(2, dtype=torch.bfloat16),
            "d": torch.tensor([True, False]), "e": torch.tensor(2.5)}
    if floats:
        made = {k: x for k, x in made.items() if x.is_floating_point() and x.dim()}
    return made if fill is None else {k: torch.zeros_like(x) for k, x in made.items()}


@pytest.mark.parametrize("options", [{}, {"fqn_to_index_mapping": {"a": 1, "b": 2, "c": 1, "d": 2, "e": 2}}, {"save_distributed": True},
                                     {"save_distributed": True, "enable_consolidation": True}])
def test_files_go_both_ways(subject, oracle, tmp_path, options):
    listed, floats = [], "enable_consolidation" in options  # all that torch makes whole files of; a 0-dim tensor becomes 0
    for torch, other in ((subject, oracle), (oracle, subject)):
        folder = tmp_path / torch.__name__
        checkpoint, storage = parts(torch)
        checkpoint.save(state(torch, None, floats), storage_writer=storage.HuggingFaceStorageWriter(str(folder), **options))
        listed.append((sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()),
                       [json.loads(p.read_text()) for p in folder.glob("*.json")]))
        checkpoint, storage = parts(other)
        got = state(other, 0, floats)
        checkpoint.load(got, storage_reader=storage.HuggingFaceStorageReader(str(folder)))
        assert {k: x.tolist() for k, x in got.items()} == {k: x.tolist() for k, x in state(other, None, floats).items()}
    assert listed[0] == listed[1]


def test_pieces_are_put_together(subject, oracle, tmp_path):
    """Files of two ranks; each holds rows, and says where they begin."""
    packed = importlib.import_module("torchlike.distributed.checkpoint._safetensors").packed
    for rank, rows in enumerate((slice(0, 2), slice(2, 3))):
        about = {"DCP_SHARDING_INFO": json.dumps({"w": {"saved_offsets": [2 * rank, 0]}}), "DCP_VERSION": "1.0", "format": "pt"}
        file = tmp_path / f"shard-{rank + 1:05}-model-00001-of-00001.safetensors"
        file.write_bytes(packed({"w": subject.arange(6.0).reshape(3, 2)[rows]}, about))
    for torch in (subject, oracle):
        checkpoint, storage = parts(torch)
        got = {"w": torch.zeros(3, 2)}
        checkpoint.load(got, storage_reader=storage.HuggingFaceStorageReader(str(tmp_path)))
        assert got["w"].tolist() == [[0, 1], [2, 3], [4, 5]]
        whole = tmp_path / torch.__name__
        whole.mkdir()
        importlib.import_module(f"{torch.__name__}.distributed.checkpoint._consolidate_hf_safetensors").consolidate_safetensors_files(
            str(tmp_path), str(whole), {"w": 1})
        got = {"w": torch.zeros(3, 2)}
        checkpoint.load(got, storage_reader=storage.HuggingFaceStorageReader(str(whole)))
        assert got["w"].tolist() == [[0, 1], [2, 3], [4, 5]] and len(list(whole.glob("*.safetensors"))) == 1
