"""20 attribution methods on a small network, 6 on a convolutional one, an embedding, two metrics"""

import numpy as np
import torch
from captum import attr
from captum.metrics import infidelity, sensitivity_max
from torch import nn

torch.manual_seed(0)
np.random.seed(0)
network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
inputs = torch.rand(2, 3)
baselines = torch.zeros(2, 3)
gradients = attr.IntegratedGradients(network)
attributions, delta = gradients.attribute(inputs, baselines, target=0, return_convergence_delta=True)
print("IntegratedGradients", attributions, delta)
print("DeepLift", attr.DeepLift(network).attribute(inputs, baselines, target=0, return_convergence_delta=True))
for method in (attr.Saliency, attr.InputXGradient, attr.GuidedBackprop, attr.Deconvolution, attr.LRP):
    print(method.__name__, method(network).attribute(inputs.clone().requires_grad_(), target=1))
for method in (attr.FeatureAblation, attr.FeaturePermutation, attr.ShapleyValueSampling):
    print(method.__name__, method(network).attribute(inputs, target=0))
print("Occlusion", attr.Occlusion(network).attribute(inputs, (1,), target=0))
print("GradientShap", attr.GradientShap(network).attribute(inputs, torch.rand(4, 3), target=0, n_samples=6))
print("DeepLiftShap", attr.DeepLiftShap(network).attribute(inputs, torch.rand(3, 3), target=1))
print("KernelShap", attr.KernelShap(network).attribute(inputs[:1], target=0, n_samples=20))
print("NoiseTunnel", attr.NoiseTunnel(gradients).attribute(inputs, nt_type="smoothgrad", nt_samples=4, target=1))
for method in (attr.LayerConductance, attr.LayerIntegratedGradients, attr.InternalInfluence, attr.LayerDeepLift):
    print(method.__name__, method(network, network[0]).attribute(inputs, target=0))
print("NeuronConductance", attr.NeuronConductance(network, network[0]).attribute(inputs, 3, target=0))


def perturb(x):
    return torch.full_like(x, 0.1), x - 0.1


print("sensitivity", sensitivity_max(gradients.attribute, inputs, target=0))
print("infidelity", infidelity(network, perturb, inputs, attributions, target=0))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.second = nn.Conv2d(4, 6, 3)
        self.relu = nn.ReLU()
        self.output = nn.Linear(216, 5)

    def forward(self, x):
        return self.output(self.relu(self.second(self.first(x))).flatten(1))


torch.manual_seed(4)
convolutional = Convolutional().eval()
images = torch.rand(2, 3, 16, 16)
maps = attr.LayerGradCam(convolutional, convolutional.second).attribute(images, target=2)
print("LayerGradCam", maps[0, 0, :2, :3], attr.LayerAttribution.interpolate(maps, (16, 16)).sum())
print("GuidedGradCam", attr.GuidedGradCam(convolutional, convolutional.second).attribute(images, target=1).abs().sum())
steps = {"n_steps": 10, "internal_batch_size": 4}
print("IntegratedGradients", attr.IntegratedGradients(convolutional).attribute(images, target=1, **steps).sum((1, 2, 3)))
print("DeepLift", attr.DeepLift(convolutional).attribute(images, target=0).sum((1, 2, 3)))
print("LRP", attr.LRP(convolutional).attribute(images, target=1).sum())
windows = {"sliding_window_shapes": (3, 8, 8), "strides": (3, 8, 8)}
print("Occlusion", attr.Occlusion(convolutional).attribute(images, target=0, **windows).sum())

text = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(48, 2))
tokens = torch.randint(0, 20, (2, 6))
layer = attr.LayerIntegratedGradients(text, text[0])
print("embedding", layer.attribute(tokens, torch.zeros_like(tokens), target=0).sum(-1))
