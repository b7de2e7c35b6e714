"""SummaryWriter: puts summaries into an event file that TensorBoard reads."""
from __future__ import annotations

import itertools
import os
import socket
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, BinaryIO

from . import _embedding, summary
from ._wire import bytes_field, double_field, int_field, record

if TYPE_CHECKING:
    from ...nn import Module

__all__ = ["FileWriter", "SummaryWriter"]

_file_numbers = itertools.count()  # so that two writers of one process and second differ
_SESSION_START = int_field(1, 1)


class FileWriter:
    """Appends events to one file in `log_dir`; they are written after `max_queue` events or `flush_secs` seconds."""

    def __init__(self, log_dir: str | os.PathLike, max_queue: int = 10, flush_secs: float = 120,
                 filename_suffix: str = "") -> None:
        self._dir = os.fspath(log_dir)
        self._max_queue, self._flush_secs, self._suffix = max_queue, flush_secs, filename_suffix
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> None:
        os.makedirs(self._dir, exist_ok=True)
        name = (f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}."
                f"{next(_file_numbers)}{self._suffix}")
        file = open(os.path.join(self._dir, name), "wb", buffering=0)  # noqa: SIM115 (kept open)
        self._waiting: list[bytes] = []
        self._flushed_at = time.monotonic()
        self._finalizer = weakref.finalize(self, _finish, file, self._waiting)
        self._file = file
        self._put(double_field(1, time.time()) + bytes_field(3, "brain.Event:2"))
        self.flush()

    def get_logdir(self) -> str:
        return self._dir

    def add_event(self, content: bytes, step: int | None = None, walltime: float | None = None) -> None:
        """Append an event with the given encoded field."""
        head = double_field(1, time.time() if walltime is None else walltime)
        self._put(head + int_field(2, int(0 if step is None else step)) + content)

    def add_summary(self, encoded: bytes, global_step: int | None = None, walltime: float | None = None) -> None:
        """Append an event with an encoded summary."""
        self.add_event(bytes_field(5, encoded), global_step, walltime)

    def add_graph(self, graph: bytes, run_metadata: bytes) -> None:
        """Append an encoded GraphDef and the RunMetadata of its one run."""
        self.add_event(bytes_field(4, graph))
        self.add_event(bytes_field(8, bytes_field(1, "step1") + bytes_field(2, run_metadata)))

    def _put(self, event: bytes) -> None:
        with self._lock:
            if not self._finalizer.alive:
                raise ValueError("the event file is closed")
            self._waiting.append(record(event))
            if len(self._waiting) >= self._max_queue or time.monotonic() - self._flushed_at > self._flush_secs:
                self._write()

    def _write(self) -> None:
        _write_all(self._file, self._waiting)
        self._flushed_at = time.monotonic()

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            if self._finalizer.alive:
                self._write()

    def close(self) -> None:
        """Write what waits, and close the file."""
        with self._lock:
            self._finalizer()

    def reopen(self) -> None:
        """Continue in a new file, if this one is closed."""
        if not self._finalizer.alive:
            self._open()


def _write_all(file: BinaryIO, waiting: list[bytes]) -> None:
    data = memoryview(b"".join(waiting))
    waiting.clear()
    while data:
        data = data[file.write(data):]


def _finish(file: BinaryIO, waiting: list[bytes]) -> None:
    _write_all(file, waiting)
    file.close()


class SummaryWriter:
    """Writes scalars, histograms, pictures, text and hyperparameters for TensorBoard into a folder.

    Args:
        log_dir: the folder; by default runs/DATE_HOST plus `comment`.
        purge_step: a step from which on TensorBoard forgets what an earlier, interrupted run wrote.
        max_queue, flush_secs: events are written after so many, or after so long.
        filename_suffix: ends the name of the event file.
    """

    def __init__(self, log_dir: str | os.PathLike | None = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        if not log_dir:
            log_dir = os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        self.default_bins = summary.default_bins()
        self._embeddings = ""  # projector_config.pbtxt, of this writer's

    def _get_file_writer(self) -> FileWriter:
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(bytes_field(7, _SESSION_START), step=self.purge_step)
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def _add(self, encoded: bytes, step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(encoded, step, walltime)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:
        """Add one number."""
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Add numbers that one chart shows together; each goes to a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        base = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            folder = f"{base}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Add a float tensor."""
        self._add(summary.tensor(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """Add the distribution of the values; `bins` as in numpy.histogram, or 'tensorflow'."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float,
                          bucket_limits: Any, bucket_counts: Any, global_step: int | None = None,
                          walltime: float | None = None) -> None:
        """Add a distribution that was counted already; limits are upper edges of buckets."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        encoded = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(encoded, global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """Add a picture: uint8, or numbers between 0 and 1."""
        self._add(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """Add a batch of pictures as a grid."""
        self._add(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                             rescale: float = 1, dataformats: str = "CHW", labels: str | list[str] | None = None) -> None:
        """Add a picture with boxes (N, 4), rows (x1, y1, x2, y2), and their labels. Needs Pillow."""
        if isinstance(labels, str):
            labels = [labels]
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        self._add(summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels), global_step, walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: int = 4, walltime: float | None = None) -> None:
        """Add a moving picture (N, T, C, H, W): uint8, or numbers between 0 and 1. Needs Pillow, where PyTorch asks for moviepy."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """Add a matplotlib figure (or each of a list), and close it unless told not to."""
        figures = figure if isinstance(figure, list) else [figure]
        for i, one in enumerate(figures):
            data = summary.figure_png(one)
            self._add(summary.image_file(tag if figures is not figure else f"{tag}/{i}", data), global_step, walltime)
            if close and "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close(one)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:
        """Add sound: (1, L) or (L,) samples between -1 and 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """Add a text, shown as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
                     num_thresholds: int = 127, weights: Any = None, walltime: float | None = None) -> None:
        """Add a precision-recall curve of labels 0 or 1 and predictions in [0, 1]."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
                         false_negative_counts: Any, precision: Any, recall: Any, global_step: int | None = None, num_thresholds: int = 127,
                         weights: Any = None, walltime: float | None = None) -> None:
        """Add a precision-recall curve that was computed already: an array of one number a threshold each."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        self._add(summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds), global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, list]]) -> None:
        """Say which scalars share a chart: {category: {chart: ['Multiline' or 'Margin', tags]}}; once for each writer."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: list[str], category: str = "default", title: str = "untitled") -> None:
        """`add_custom_scalars` of one chart of several lines."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: list[str], category: str = "default", title: str = "untitled") -> None:
        """`add_custom_scalars` of one chart of a value between two limits, by three tags."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: dict | None = None,
                 global_step: int | None = None, walltime: float | None = None) -> None:
        """Add points (N, V, 3) in space, with colors (N, V, 3) and triangles (N, F, 3); `config_dict` holds settings for Three.js."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_graph(self, model: Module, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """Add the operators that a model runs for example inputs, a tensor or a tuple of arguments, in the scopes of its modules.

        verbose            prints the operators, too
        use_strict_trace   makes no difference: the model runs, and what it does is recorded
        """
        from . import _graph
        self._get_file_writer().add_graph(_graph.graph(model, input_to_model, verbose), _graph.STEP_STATS)

    def add_embedding(self, mat: Any, metadata: list | None = None, label_img: Any = None, global_step: int | None = None,
                      tag: str = "default", metadata_header: list | None = None) -> None:
        """Add points (N, D) for the projector, with labels (or rows of as many as the header has) and pictures (N, C, H, W)."""
        step, folder = int(global_step or 0), self._get_file_writer().get_logdir()
        _embedding.write(os.path.join(folder, _embedding.folder(tag, step)), mat, metadata, label_img, metadata_header)
        self._embeddings += _embedding.entry(tag, step, metadata, label_img)
        with open(os.path.join(folder, "projector_config.pbtxt"), "w", encoding="utf-8") as f:
            f.write(self._embeddings)

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
                    hparam_domain_discrete: dict[str, list] | None = None, run_name: str | None = None,
                    global_step: int | None = None) -> None:
        """Add hyperparameters and the results they led to, as a run of their own."""
        summaries = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for encoded in summaries:
                run._add(encoded, global_step, None)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def flush(self) -> None:
        """Write what waits to the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits and close the files; adding more opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
