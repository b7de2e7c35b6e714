"""Networks for images: timm's classifiers, U-Net, autoencoders."""
from __future__ import annotations

import timm
import torch
from torch import nn

from .common import F, classifier, steps


def resnet50():
    return classifier(timm.create_model("resnet50"), 4, 64)


def vgg16():
    """The layers of VGG-16 with batch normalization, and one linear layer in the place of its two of 4096."""
    return classifier(nn.Sequential(timm.create_model("vgg16_bn").features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)), 2, 48)


def densenet121():
    return classifier(timm.create_model("densenet121"), 4, 64)


def inception_v3():
    return classifier(timm.create_model("inception_v3"), 2, 139)


def regnet():
    return classifier(timm.create_model("regnetx_004"), 8, 96)


def resnext():
    return classifier(timm.create_model("resnext50_32x4d"), 4, 64)


def mobilenet_v2():
    return classifier(timm.create_model("mobilenetv2_100"), 8, 96)


def mobilenet_v3():
    return classifier(timm.create_model("mobilenetv3_small_100"), 16, 96)


def efficientnet():
    return classifier(timm.create_model("efficientnet_b0"), 4, 96)


def shufflenet():
    """ShuffleNet V2, with 58, 116 and 232 channels in its stages."""
    class Unit(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            half = b // 2
            one = lambda m, n: [nn.Conv2d(m, n, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU(inplace=True)]
            deep = lambda n: [nn.Conv2d(n, n, 3, stride, 1, groups=n, bias=False), nn.BatchNorm2d(n)]
            self.right = nn.Sequential(*one(a if stride > 1 else half, half), *deep(half), *one(half, half))
            self.left = nn.Sequential(*deep(a), *one(a, half)) if stride > 1 else None

        def forward(self, x):
            left, right = (x, x) if self.left else x.chunk(2, 1)
            x = torch.cat([self.left(left) if self.left else left, self.right(right)], 1)
            b, c, h, w = x.shape
            return x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)
    stages = [unit for a, b, n in ((24, 116, 4), (116, 232, 8), (232, 464, 4)) for unit in (Unit(a, b, 2), *(Unit(b, b, 1) for _ in range(n - 1)))]
    return classifier(nn.Sequential(nn.Conv2d(3, 24, 3, 2, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), *stages,
                                    nn.Conv2d(464, 1024, 1, bias=False), nn.BatchNorm2d(1024), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                    nn.Linear(1024, 1000)), 16, 96)


def convnext():
    return classifier(timm.create_model("convnext_atto"), 4, 96)


def vit():
    return classifier(timm.create_model("vit_tiny_patch16_224", img_size=96, depth=6), 8, 96)


def swin():
    from timm.models.swin_transformer import SwinTransformer
    return classifier(SwinTransformer(64, 4, embed_dim=48, depths=(2, 2, 2), num_heads=(2, 4, 8), window_size=4), 4, 64)


def deit():
    return classifier(timm.create_model("deit_tiny_distilled_patch16_224", img_size=96), 4, 96)


def mlp_mixer():
    return classifier(timm.create_model("mixer_s32_224", img_size=96), 4, 96)


def unet():
    class Double(nn.Sequential):
        def __init__(self, a, b):
            super().__init__(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b),
                             nn.ReLU(inplace=True))

    class UNet(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            sizes = [width * 2 ** i for i in range(4)]
            self.down = nn.ModuleList([Double(a, b) for a, b in zip([3, *sizes], sizes)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:])])
            self.join = nn.ModuleList([Double(b, a) for a, b in zip(sizes, sizes[1:])])
            self.head = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            kept = []
            for layer in self.down[:-1]:
                x = layer(x)
                kept.append(x)
                x = F.max_pool2d(x, 2)
            x = self.down[-1](x)
            for up, join in zip(reversed(self.up), reversed(self.join)):
                x = join(torch.cat([kept.pop(), up(x)], 1))
            return self.head(x)
    y = torch.randint(0, 2, (2, 96, 96))
    model = UNet()
    return steps(model, (torch.randn(2, 3, 96, 96),), lambda out: F.cross_entropy(out, y), torch.optim.Adam(model.parameters(), 1e-3))


def segmentation():
    import segmentation_models_pytorch as smp
    y = torch.randint(0, 2, (2, 1, 64, 64)).float()
    return steps(smp.Unet("resnet18", encoder_weights=None), (torch.randn(2, 3, 64, 64),), lambda out: F.binary_cross_entropy_with_logits(out, y))


def autoencoder():
    model = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 7), nn.ReLU(),
                          nn.ConvTranspose2d(64, 32, 7), nn.ReLU(), nn.ConvTranspose2d(32, 16, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 3, 2, 1, 1),
                          nn.Sigmoid())
    x = torch.rand(64, 1, 28, 28)
    return steps(model, (x,), lambda out: F.mse_loss(out, x), torch.optim.Adam(model.parameters(), 1e-3))


def vae():
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.mean, self.spread, self.up, self.out = (nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20), nn.Linear(20, 400),
                                                                      nn.Linear(400, 784))

        def forward(self, x):
            h = F.relu(self.hidden(x))
            self.m, self.v = self.mean(h), self.spread(h)
            z = self.m + torch.exp(0.5 * self.v) * torch.randn_like(self.v)
            return torch.sigmoid(self.out(F.relu(self.up(z))))
    model, x = VAE(), torch.rand(128, 784)
    loss = lambda out: F.binary_cross_entropy(out, x, reduction="sum") - 0.5 * torch.sum(1 + model.v - model.m.pow(2) - model.v.exp())
    return steps(model, (x,), loss, torch.optim.Adam(model.parameters(), 1e-3))


def dcgan():
    """Both networks' steps of DCGAN, and the generator's forward."""
    wide = 32
    g = nn.Sequential(nn.ConvTranspose2d(64, wide * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(wide * 4), nn.ReLU(True),
                      nn.ConvTranspose2d(wide * 4, wide * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(wide * 2), nn.ReLU(True),
                      nn.ConvTranspose2d(wide * 2, wide, 4, 2, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(True),
                      nn.ConvTranspose2d(wide, 3, 4, 2, 1, bias=False), nn.Tanh())
    d = nn.Sequential(nn.Conv2d(3, wide, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True), nn.Conv2d(wide, wide * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(wide * 2),
                      nn.LeakyReLU(0.2, True), nn.Conv2d(wide * 2, wide * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(wide * 4), nn.LeakyReLU(0.2, True),
                      nn.Conv2d(wide * 4, 1, 4, 1, 0, bias=False), nn.Flatten())
    real = torch.randn(16, 3, 32, 32)
    of_g, of_d = torch.optim.Adam(g.parameters(), 2e-4, (0.5, 0.999)), torch.optim.Adam(d.parameters(), 2e-4, (0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()

    def train():
        d.zero_grad()
        out = d(real)
        loss = bce(out, torch.ones_like(out))
        loss.backward()
        fake = g(torch.randn(16, 64, 1, 1))
        out = d(fake.detach())
        wrong = bce(out, torch.zeros_like(out))
        wrong.backward()
        of_d.step()
        g.zero_grad()
        out = d(fake)
        good = bce(out, torch.ones_like(out))
        good.backward()
        of_g.step()
        return loss.item() + wrong.item() + good.item()

    def forward():
        with torch.no_grad():
            return g(torch.randn(16, 64, 1, 1)).sum().item()
    return {"train": (g.train, train), "forward": (g.eval, forward)}


def diffusion_unet():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    x, noise, t = torch.randn(4, 3, 32, 32), torch.randn(4, 3, 32, 32), torch.randint(0, 1000, (4,))
    return steps(model, (x, t), lambda out: F.mse_loss(out, noise), torch.optim.AdamW(model.parameters(), 1e-4), result=lambda out: out.sample)


def wgan_gp():
    """A critic's step with the gradient penalty, which is a double backward."""
    d = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32 * 49, 1))
    optimizer = torch.optim.Adam(d.parameters(), 1e-4, (0.0, 0.9))
    real, fake = torch.randn(32, 1, 28, 28), torch.randn(32, 1, 28, 28)

    def train():
        optimizer.zero_grad()
        a = torch.rand(32, 1, 1, 1)
        mix = (a * real + (1 - a) * fake).requires_grad_()
        out = d(mix)
        g, = torch.autograd.grad(out, mix, torch.ones_like(out), create_graph=True)
        loss = d(fake).mean() - d(real).mean() + 10 * ((g.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    return {"train": (d.train, train)}
