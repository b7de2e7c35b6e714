"""Twelve models built, run and trained a step in float64, their transforms' presets, feature extraction, segmentation, video, optical flow

In float32 a network of batch norms on a few pixels amplifies rounding; in float64 the same programs show what is computed."""

import torch
import torch.nn.functional as F
import torchvision
from torchvision import models
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)


def outputs(made):
    return list(made.values()) if isinstance(made, dict) else [made] if isinstance(made, torch.Tensor) else [x for x in made if x is not None]


def step(name, model, x):
    """What a model returns before and after one step of SGD."""
    model.eval()
    with torch.no_grad():
        before = outputs(model(x))[0]
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    made = outputs(model(x))
    loss = sum(F.cross_entropy(y, torch.zeros(len(y), *y.shape[2:], dtype=torch.int64)) for y in made)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    weights = sum(p.detach().abs().sum() for p in model.parameters())
    print(name, len(model.state_dict()), tuple(before.shape), f"{before.abs().sum():.6g} {loss:.6f} {norm:.5g} {weights:.8g}")


image = torch.rand(2, 3, 64, 64)
for name in ("alexnet", "resnet18", "squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0", "regnet_y_400mf"):
    step(name, models.get_model(name, weights=None, num_classes=5), image)
step("vit", models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=5), torch.rand(2, 3, 32, 32))
step("swin", models.SwinTransformer([4, 4], 16, [1, 1], [2, 4], [4, 4], num_classes=5), image)
step("convnext", models.convnext_tiny(num_classes=5), image)
step("lraspp", models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5), image)
step("mc3", models.video.mc3_18(num_classes=5), torch.rand(2, 3, 4, 16, 16))

torch.set_default_dtype(torch.float32)
flow = models.optical_flow.raft_small(weights=None).eval()
with torch.no_grad():
    print("raft", [f"{x.abs().mean():.5f}" for x in flow(torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128), num_flow_updates=2)])

resnet = models.resnet18(weights=None).eval()
print("nodes", *(len(names) for names in get_graph_node_names(resnet)), get_graph_node_names(resnet)[0][:6])
features = create_feature_extractor(resnet, {"layer1": "low", "layer4.1.relu_1": "high"})
print("features", {name: (tuple(x.shape), f"{x.mean():.5f}") for name, x in features(torch.rand(1, 3, 64, 64)).items()})

weights = models.get_weight("ResNet50_Weights.IMAGENET1K_V2")
print(weights, weights.meta["num_params"], weights.transforms())
print("preset", f"{weights.transforms()(torch.randint(0, 256, (3, 300, 280), dtype=torch.uint8)).mean():.5f}")
print(models.list_models(include="resnet*"), models.list_models(module=torchvision.models.segmentation))
print(models.squeezenet1_1(num_classes=3))
