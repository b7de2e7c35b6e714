"""What torchvision's operations take and give: its own registrations of shapes, derivatives and autocast kernels refer to them."""
from .._custom_operator import kernel
from ..library import define

_REGION = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_IMAGE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_WINDOW = "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"

for _name, _schema in {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "box_iou_rotated": "(Tensor boxes1, Tensor boxes2) -> Tensor",
    "roi_align": f"(Tensor input, Tensor rois, {_REGION}, int sampling_ratio, bool aligned) -> Tensor",
    "_roi_align_backward": f"(Tensor grad, Tensor rois, {_REGION}, {_IMAGE}, int sampling_ratio, bool aligned) -> Tensor",
    "qroi_align": f"(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, {_REGION}, "
                  "int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool": f"(Tensor input, Tensor rois, {_REGION}) -> (Tensor, Tensor)",
    "_roi_pool_backward": f"(Tensor grad, Tensor rois, Tensor argmax, {_REGION}, {_IMAGE}) -> Tensor",
    "ps_roi_align": f"(Tensor input, Tensor rois, {_REGION}, int sampling_ratio) -> (Tensor, Tensor)",
    "_ps_roi_align_backward": f"(Tensor grad, Tensor rois, Tensor channel_mapping, {_REGION}, int sampling_ratio, {_IMAGE}) -> Tensor",
    "ps_roi_pool": f"(Tensor input, Tensor rois, {_REGION}) -> (Tensor, Tensor)",
    "_ps_roi_pool_backward": f"(Tensor grad, Tensor rois, Tensor channel_mapping, {_REGION}, {_IMAGE}) -> Tensor",
    "deform_conv2d": f"(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_WINDOW}) -> Tensor",
    "_deform_conv2d_backward": f"(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_WINDOW}) -> "
                               "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_cuda_version": "() -> int",
}.items():
    define(f"torchvision::{_name}", _schema)


@kernel("torchvision::_cuda_version", "default")
def _cuda_version() -> int:
    """-1: no CUDA library is behind these operations."""
    return -1
