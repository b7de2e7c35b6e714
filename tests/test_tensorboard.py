"""SummaryWriter's files beside those of real torch, read by TensorBoard's own reader."""
import io

import numpy as np
import pytest
import torch as real
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from torch.utils.tensorboard import SummaryWriter as RealWriter

import torchlike
from torchlike.utils.tensorboard import SummaryWriter


def pixels(data):
    """The frames of a picture file."""
    picture = Image.open(io.BytesIO(data))
    frames = []
    for k in range(getattr(picture, "n_frames", 1)):
        picture.seek(k)
        frames.append(np.asarray(picture.convert("RGB")).tolist())
    return frames


def written(torch, kind, folder, add):
    """What `add` put into a log folder: its events, and its other files."""
    with kind(folder) as writer:
        add(torch, writer)
    path, = folder.glob("events*")
    events = []
    for raw in RawEventFileLoader(str(path)).Load():
        event = Event.FromString(raw)
        event.ClearField("wall_time")
        event.ClearField("source_metadata")
        pictures = []
        for value in event.summary.value:
            if value.HasField("image"):
                pictures.append(pixels(value.image.encoded_image_string))
                value.image.encoded_image_string = b""
        events.append((str(event), pictures))
    files = {str(p.relative_to(folder)): pixels(p.read_bytes()) if p.suffix == ".png" else p.read_text()
             for p in folder.rglob("*") if p.is_file() and p != path}
    return events, files


def meshes(torch, w):
    points = torch.arange(6.).reshape(1, 2, 3)
    w.add_mesh("m", points, torch.tensor([[[255, 0, 0], [0, 255, 0]]]), torch.tensor([[[0, 1, 1]]]), config_dict={"camera": {"fov": 3}}, global_step=3)
    w.add_mesh("many", torch.zeros(2, 300, 3))


def embeddings(torch, w):
    pictures = torch.arange(3 * 3 * 4 * 4).reshape(3, 3, 4, 4) / 144
    w.add_embedding(torch.arange(6.).reshape(3, 2), metadata=["a", "b", "ü"], label_img=pictures, global_step=2, tag="t/x \"y\" ü")
    w.add_embedding(torch.arange(6.).reshape(3, 2).half(), metadata=[(1, 2), (3, 4), (5, 6)], metadata_header=["p", "q"])
    w.add_embedding(np.arange(6.).reshape(3, 2))


def boxes(torch, w):
    w.add_image_with_boxes("b", torch.zeros(3, 40, 30), torch.tensor([[2., 3., 25., 30.], [1., 1., 9., 9.]]), labels=["cat", ""])
    w.add_image_with_boxes("c", torch.full((20, 20, 3), 0.5), torch.tensor([[2., 3., 10., 12.]]), dataformats="HWC", labels=["too", "many"])


ADDED = {
    "charts": lambda torch, w: (w.add_custom_scalars({"A": {"x": ["Multiline", ["a", "b"]]}, "B": {"y": ["Margin", ["a", "b", "c"]]}}),
                                w.add_custom_scalars_multilinechart(["a", "b"]), w.add_custom_scalars_marginchart(["a", "b", "c"], "k", "t")),
    "meshes": meshes, "embeddings": embeddings, "boxes": boxes,
    "curves": lambda torch, w: (w.add_pr_curve_raw("r", [5, 4], [3, 2], [0, 1], [0, 2], [.5, .25], [1, .5], num_thresholds=2),
                                w.add_pr_curve("p", torch.tensor([0, 1, 1]), torch.tensor([.1, .6, .4]), 7)),
    "texts": lambda torch, w: (w.add_text("t", "*hello* ü", 7), w.add_scalar("s", torch.tensor(2.5), 1), w.add_scalar("n", 2.5, new_style=True),
                               w.add_scalar("d", 2.5, new_style=True, double_precision=True), w.add_tensor("e", torch.ones(2, 3))),
    "distributions": lambda torch, w: (w.add_histogram("h", torch.arange(10.), 2), w.add_histogram("b", torch.arange(10, dtype=torch.bfloat16) / 3),
                                       w.add_histogram("g", torch.arange(100.), bins=[0, 5, 50, 100], max_bins=2),
                                       w.add_histogram_raw("r", 0, 3, 4, 6, 14, [1, 2, 3], [1, 1, 2])),
    "pictures": lambda torch, w: (w.add_image("i", torch.arange(48).reshape(3, 4, 4) / 48), w.add_images("n", torch.arange(96).reshape(6, 1, 4, 4) / 96)),
}


@pytest.mark.parametrize("kind", ADDED)
def test_files(kind, tmp_path):
    want = written(real, RealWriter, tmp_path / "theirs", ADDED[kind])
    assert written(torchlike, SummaryWriter, tmp_path / "ours", ADDED[kind]) == want


def test_videos(tmp_path):
    """PyTorch leaves these to moviepy; frames of a batch of three lie in a grid of 1 by 4."""
    video = torchlike.zeros(3, 2, 3, 4, 5)
    video[1, 0] = 1
    (_, (event, (frames,))), _ = written(torchlike, SummaryWriter, tmp_path, lambda torch, w: w.add_video("v", video, 1, fps=5))
    assert "height: 4\n      width: 20" in event and np.shape(frames) == (2, 4, 20, 3)
    want = np.zeros((4, 20, 3))
    want[:, 5:10] = 255
    np.testing.assert_array_equal(frames, [want, np.zeros_like(want)])


def network(torch):
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)
            self.layers = torch.nn.ModuleList([torch.nn.Linear(72, 4), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())])

        def forward(self, x, shift):
            x = torch.relu(self.bn(self.conv(x))).flatten(1)
            for layer in self.layers:
                x = layer(x) + shift
            low, high = x.chunk(2, 1)
            return low, torch.cat([high, low])
    return Network(), (torch.ones(1, 1, 8, 8), torch.ones(4))


def drawn(torch, kind, folder):
    """The operators of a model's graph with their scopes, what they read, and the sizes of what they give."""
    model, args = network(torch)
    with kind(folder) as writer:
        writer.add_graph(model, args)
    assert model.training and model.bn.training
    path, = folder.glob("events*")
    events = [Event.FromString(raw) for raw in RawEventFileLoader(str(path)).Load()]
    assert [e.tagged_run_metadata.tag for e in events if e.HasField("tagged_run_metadata")] == ["step1"]
    graph, = (GraphDef.FromString(e.graph_def) for e in events if e.graph_def)
    nodes = {n.name: n for n in graph.node}
    assert len(nodes) == len(graph.node) and all(name in nodes for n in graph.node for name in n.input if not n.op.startswith("prim::"))
    found = []
    for n in graph.node:
        if not n.op.startswith("prim::"):
            sizes = [[d.size for d in s.dim] for s in n.attr["_output_shapes"].list.shape]
            scope, op = n.name.rpartition("/")[0], {"aten::_convolution": "aten::conv2d"}.get(n.op, n.op)
            found.append((scope, op, sizes if op not in ("aten::chunk", "IO Node") else []))
    return sorted(found), graph.versions.producer


def test_graph(tmp_path):
    assert drawn(torchlike, SummaryWriter, tmp_path / "ours") == drawn(real, RealWriter, tmp_path / "theirs")


@pytest.mark.parametrize("torch, kind", [(real, RealWriter), (torchlike, SummaryWriter)])
def test_graphs_of_wrong_inputs(torch, kind, tmp_path):
    with kind(tmp_path) as w:
        for given in (None, torch.ones(4)):
            with pytest.raises(RuntimeError):
                w.add_graph(torch.nn.Linear(2, 3), given)


def test_wrong_embeddings(tmp_path):
    for kind, torch, folder in ((RealWriter, real, tmp_path / "theirs"), (SummaryWriter, torchlike, tmp_path / "ours")):
        with kind(folder) as w:
            for tag, change in (("a", {"metadata": ["x"]}), ("b", {"label_img": torch.ones(2, 3, 4, 4)}), ("c", {"mat": torch.ones(3)}),
                                ("d", {"metadata": ["xy"] * 3, "metadata_header": ["p"]})):
                with pytest.raises(AssertionError, match="equal|2D"):
                    w.add_embedding(**{"mat": torch.ones(3, 2), "tag": tag} | change)
            (folder / "00000" / "file").write_text("")
            with pytest.raises(NotADirectoryError, match="exists, but is a file"):
                w.add_embedding(torch.ones(3, 2), tag="file")
