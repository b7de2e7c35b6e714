"""Detection: operations on boxes and regions, 4 detectors trained and evaluated, in float64 as training magnifies rounding"""

import torch
from torchvision import ops
from torchvision.models import detection

torch.manual_seed(0)
corners = torch.rand(60, 2) * 40
boxes = torch.cat([corners, corners + torch.rand(60, 2) * 20 + 1], 1)
scores, classes = torch.rand(60), torch.randint(0, 3, (60,))
print("kept", ops.nms(boxes, scores, 0.3).tolist(), ops.batched_nms(boxes, scores, classes, 0.3).tolist())
print("overlaps", ops.box_iou(boxes, boxes).sum(), ops.generalized_box_iou(boxes, boxes).sum(), ops.complete_box_iou(boxes, boxes).sum())
print("turned", ops.box_iou(torch.cat([boxes[:8], scores[:8, None] * 90], 1), torch.cat([boxes[:8], scores[8:16, None] * 90], 1), fmt="xywhr").sum())
maps, regions = torch.rand(2, 18, 20, 24, requires_grad=True), torch.cat([torch.arange(60)[:, None] % 2, boxes], 1)
for function in (ops.roi_align, ops.roi_pool, ops.ps_roi_align, ops.ps_roi_pool):
    maps.grad = None
    pooled = function(maps, regions, (3, 3), 0.4)
    pooled.square().sum().backward()
    print(function.__name__, tuple(pooled.shape), pooled.sum(), maps.grad.abs().sum())
layer = ops.DeformConv2d(18, 8, 3, padding=1)
offset, mask = torch.randn(2, 18, 20, 24, requires_grad=True), torch.rand(2, 9, 20, 24, requires_grad=True)
layer(maps, offset, mask).square().sum().backward()
print("deformable", layer.weight.grad.sum(), offset.grad.abs().sum(), mask.grad.abs().sum())
for loss in (ops.generalized_box_iou_loss, ops.complete_box_iou_loss, ops.distance_box_iou_loss):
    print(loss.__name__, loss(boxes, boxes.roll(1, 0), reduction="mean"))
print("focal", ops.sigmoid_focal_loss(torch.randn(6, 3), torch.eye(6)[:, :3], reduction="mean"))
print("dropped", ops.drop_block2d(torch.ones(1, 2, 8, 8), 0.2, 3).sum(), ops.stochastic_depth(torch.ones(6, 1), 0.5, "row").sum())
pyramid = ops.FeaturePyramidNetwork([4, 6], 5)({"a": torch.rand(1, 4, 16, 16), "b": torch.rand(1, 6, 8, 8)})
print("pyramid", {name: (tuple(level.shape), level.sum()) for name, level in pyramid.items()})

SIZE = 64
torch.set_default_dtype(torch.float64)
for name, options in {
    "fasterrcnn_mobilenet_v3_large_320_fpn": {"num_classes": 4, "min_size": SIZE, "max_size": SIZE},
    "retinanet_resnet50_fpn": {"num_classes": 4, "min_size": SIZE, "max_size": SIZE},
    "fcos_resnet50_fpn": {"num_classes": 4, "min_size": SIZE, "max_size": SIZE},
    "ssdlite320_mobilenet_v3_large": {"num_classes": 4},
}.items():
    torch.manual_seed(0)
    model = getattr(detection, name)(weights=None, weights_backbone=None, **options)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 1e-3)
    for step in range(2):
        images = [torch.rand(3, SIZE, SIZE) for _ in range(2)]
        targets = []
        for _ in images:
            low = torch.rand(2 + step, 2) * SIZE / 2
            here = torch.cat([low, low + 8 + torch.rand(2 + step, 2) * SIZE / 3], 1)
            targets.append({"boxes": here, "labels": torch.randint(1, 4, (2 + step,))})
        losses = model(images, targets)
        optimizer.zero_grad()
        sum(losses.values()).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        print(name, step, {key: round(value.item(), 6) for key, value in losses.items()}, f"{norm:.6g}")
    model.eval()
    with torch.no_grad():
        found = model(images)[0]
    print({key: tuple(value.shape) for key, value in found.items()}, f"{found['boxes'].sum():.4f} {found['scores'].sum():.6f}")
