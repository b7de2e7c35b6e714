"""Small programs of ours that train models of public repositories which are libraries, or whose own programs need large data.

The models, losses and optimizers are the repositories' own, imported unmodified.
"""

import textwrap
from collections.abc import Callable
from pathlib import Path

# What the drivers share: inputs of a fixed seed, and a few steps whose losses and gradients are printed.
_TRAINING = """
    import numpy as np
    import torch


    def normal(*sizes, seed=0):
        return torch.from_numpy(np.random.default_rng(seed).standard_normal(sizes).astype(np.float32))


    def below(most, *sizes, seed=0):
        return torch.from_numpy(np.random.default_rng(seed).integers(0, most, sizes))


    def train(model, loss_of, steps=4, lr=1e-3, kind=torch.optim.Adam):
        print(type(model).__name__, sum(p.numel() for p in model.parameters()), "parameters")
        optimizer = kind(model.parameters(), lr=lr)
        for step in range(steps):
            optimizer.zero_grad()
            loss = loss_of(step)
            loss.backward()
            if step == 0:
                norms = [p.grad.double().norm().item() for p in model.parameters() if p.grad is not None]
                print(len(norms), "gradients, norms", sum(norms))
            optimizer.step()
            print(f"step {step}: loss {loss.item():.6f}")
"""

_DRIVERS = {
    "llama2.c": """
        import torch
        from model import ModelArgs, Transformer
        from training import below

        torch.manual_seed(0)
        model = Transformer(ModelArgs(dim=64, n_layers=3, n_heads=4, n_kv_heads=2, vocab_size=128, multiple_of=16, max_seq_len=64))
        optimizer = model.configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cpu")
        ids = below(128, 8, 65)
        inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
        for step in range(30):
            model(inputs, targets)
            model.last_loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            print(f"step {step}: loss {model.last_loss.item():.5f}")
        model.eval()
        print(model.generate(inputs[:1, :4], 20, temperature=1.0, top_k=20).tolist())
    """,
    "pytorch-cifar": """
        import torch
        from models.resnet import ResNet18
        from models.senet import SENet18
        from training import below, normal, train

        images, labels = normal(4, 3, 32, 32), below(10, 4)
        for kind in ResNet18, SENet18:
            torch.manual_seed(0)
            model = kind()
            train(model, lambda step: torch.nn.functional.cross_entropy(model(images), labels), 3, 1e-3, torch.optim.SGD)
    """,
    "waveglow": """
        import torch
        from glow import WaveGlow, WaveGlowLoss
        from training import normal, train

        torch.manual_seed(0)
        layers = {"n_layers": 3, "n_channels": 32, "kernel_size": 3}
        model = WaveGlow(n_mel_channels=20, n_flows=4, n_group=8, n_early_every=2, n_early_size=2, WN_config=layers)
        criterion = WaveGlowLoss(0.7)
        for p in model.parameters():  # no weight stays zero, or most gradients would be
            if p.abs().sum() == 0:
                torch.nn.init.normal_(p, std=0.02)
        mel, audio = normal(2, 20, 8), normal(2, 8 * 256, seed=1) * 0.1
        train(model, lambda step: criterion(model((mel, audio))), 6, 1e-4)
    """,
    "mamba.py": """
        import torch
        from mambapy.mamba import Mamba, MambaConfig
        from training import normal, train

        inputs = normal(2, 32, 32)
        for parallel in True, False:
            torch.manual_seed(0)
            model = Mamba(MambaConfig(d_model=32, n_layers=2, pscan=parallel))
            train(model, lambda step: model(inputs).square().mean(), 4)
        caches = [(None, torch.zeros(2, 64, 3)) for _ in range(2)]
        with torch.no_grad():
            for t in range(4):
                last, caches = model.step(inputs[:, t], caches)
        print(last.double().sum().item())
    """,
    "efficient-kan": """
        import torch
        from efficient_kan import KAN
        from training import below, normal, train

        torch.manual_seed(0)
        model, inputs, labels = KAN([8, 16, 4]), normal(64, 8), below(4, 64)


        def loss_of(step):
            outputs = model(inputs, update_grid=step == 2)
            return torch.nn.functional.cross_entropy(outputs, labels) + 1e-3 * model.regularization_loss()


        train(model, loss_of, 6, 1e-2, torch.optim.AdamW)
    """,
    "BERT": """
        import torch
        from bert_pytorch.model import BERT
        from bert_pytorch.trainer import BERTTrainer
        from training import below

        torch.manual_seed(0)
        batches = [
            {
                "bert_input": below(60, 4, 20, seed=i),
                "bert_label": below(60, 4, 20, seed=i + 1),
                "segment_label": torch.ones(4, 20).long(),
                "is_next": below(2, 4, seed=i),
            }
            for i in range(8)
        ]
        bert = BERT(60, hidden=64, n_layers=2, attn_heads=4, dropout=0.1)
        trainer = BERTTrainer(bert, 60, train_dataloader=batches, test_dataloader=batches[:2], lr=1e-3, with_cuda=False, log_freq=2)
        for epoch in range(3):
            trainer.train(epoch)
            trainer.test(epoch)
    """,
    "nanochat": """
        import torch
        from nanochat.gpt import GPT, GPTConfig
        from training import below

        torch.manual_seed(0)
        model = GPT(GPTConfig(sequence_len=64, vocab_size=256, n_layer=4, n_head=4, n_kv_head=2, n_embd=64, window_pattern="SL"))
        model.init_weights()
        for p in model.parameters():  # no weight stays zero, or most gradients would be
            if p.abs().sum() == 0:
                torch.nn.init.normal_(p, std=0.02)
        optimizer = model.setup_optimizer()
        print(type(optimizer).__name__, model.estimate_flops())
        for step in range(6):
            tokens = below(256, 4, 65, seed=step)
            loss = model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
            loss.backward()
            optimizer.step()
            model.zero_grad(set_to_none=True)
            print(f"step {step}: loss {loss.item():.6f}")
        print(list(model.generate([1, 2, 3], 12, temperature=0.0)), list(model.generate([1, 2, 3], 12, top_k=10)))
    """,
    "RWKV-LM": """
        import torch
        from src.model import GPT, GPTConfig
        from training import below, train

        for kind in "RWKV", "MHA_rotary", "MHA_shift", "MHA_pro":
            torch.manual_seed(0)
            sizes = {"n_layer": 2, "n_head": 4, "n_embd": 64, "n_attn": 64, "n_ffn": 64}
            model = GPT(GPTConfig(60, 32, model_type=kind, rwkv_emb_scale=0.4, rwkv_tiny_attn=0, rwkv_tiny_head=1, **sizes))
            for p in model.parameters():  # no weight stays zero, or most gradients would be
                if p.abs().sum() == 0:
                    torch.nn.init.normal_(p, std=0.05)
            train(model, lambda step: model(below(60, 4, 32), below(60, 4, 32, seed=1))[1], 5)
    """,
    "hifi-gan": """
        import torch
        import torch.nn.functional as F
        from models import Generator, MultiPeriodDiscriminator, MultiScaleDiscriminator, discriminator_loss, feature_loss, generator_loss
        from env import AttrDict
        from training import normal, train

        torch.manual_seed(0)
        blocks = {"resblock": "1", "resblock_kernel_sizes": [3, 5], "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5]]}
        generator = Generator(AttrDict(upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8], upsample_initial_channel=32, **blocks))
        critics = torch.nn.ModuleList([MultiPeriodDiscriminator(), MultiScaleDiscriminator()])
        mel, audio = normal(2, 80, 32), normal(2, 1, 512, seed=1) * 0.3


        def critics_loss(step):
            made = generator(mel).detach()
            return sum(discriminator_loss(*critic(audio, made)[:2])[0] for critic in critics)


        def generators_loss(step):
            made = generator(mel)
            loss = 45 * F.l1_loss(made, audio)
            for critic in critics:
                _, judged, real, false = critic(audio, made)
                loss = loss + feature_loss(real, false) + generator_loss(judged)[0]
            return loss


        for _ in range(2):
            train(critics, critics_loss, 2, 2e-4, torch.optim.AdamW)
            train(generator, generators_loss, 2, 2e-4, torch.optim.AdamW)
        generator.eval()
        generator.remove_weight_norm()
        print(generator(mel).double().norm().item())
    """,
    "RAFT": """
        import argparse

        import torch
        from raft import RAFT
        from training import normal, train

        torch.manual_seed(0)
        model = RAFT(argparse.Namespace(small=True, dropout=0.0, mixed_precision=False, alternate_corr=False))
        model.train()
        first, second = (normal(1, 3, 128, 128, seed=i).mul(40).add(128).clamp(0, 255) for i in (0, 1))
        flow = normal(1, 2, 128, 128, seed=2)


        def loss_of(step):
            guesses = model(first, second, iters=3)
            return sum(0.8 ** (2 - i) * (guess - flow).abs().mean() for i, guess in enumerate(guesses))


        train(model, loss_of, 4, 1e-4, torch.optim.AdamW)
        model.eval()
        with torch.no_grad():
            print([f.double().norm().item() for f in model(first, second, iters=2, test_mode=True)])
    """,
    "encodec": """
        import torch
        from encodec.model import EncodecModel
        from encodec.modules import SEANetDecoder, SEANetEncoder
        from encodec.msstftd import MultiScaleSTFTDiscriminator
        from encodec.quantization import ResidualVectorQuantizer
        from training import normal, train

        torch.manual_seed(0)
        sizes = {"channels": 1, "dimension": 16, "n_filters": 4, "ratios": [4, 2], "lstm": 1, "causal": True, "norm": "weight_norm"}
        encoder, decoder, quantizer = SEANetEncoder(**sizes), SEANetDecoder(**sizes), ResidualVectorQuantizer(dimension=16, n_q=4, bins=32)
        model = EncodecModel(encoder, decoder, quantizer, [1.5, 3.0], 1000, 1, name="small")
        critic = MultiScaleSTFTDiscriminator(filters=4, n_ffts=[64, 32], hop_lengths=[16, 8], win_lengths=[64, 32])
        audio = normal(2, 1, 800) * 0.3


        def loss_of(step):
            codes = quantizer(encoder(audio), model.frame_rate, 1.5)
            made = decoder(codes.quantized)[..., :800]
            return (made - audio).abs().mean() + codes.penalty + 0.1 * sum((1 - judged).square().mean() for judged in critic(made)[0])


        train(model, loss_of, 6)
        model.eval()
        model.set_target_bandwidth(3.0)
        with torch.no_grad():
            frames = model.encode(audio)
            print(frames[0][0].sum().item(), model.decode(frames).double().norm().item())
    """,
    "schedule_free": """
        import schedulefree
        import torch
        from training import below, normal

        inputs, labels = normal(64, 8), below(3, 64)
        for name in "AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree", "AdamWScheduleFreeClosure", "AdamWScheduleFreeReference":
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
            optimizer = getattr(schedulefree, name)(model.parameters(), lr=0.01)


            def closure():
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                return loss


            for step in range(12):
                if "Closure" not in name:
                    optimizer.train()
                loss = optimizer.step(closure)
                print(f"{name} step {step}: loss {loss.item():.6f}")
            if "Closure" not in name:
                optimizer.eval()
            print(torch.nn.functional.cross_entropy(model(inputs), labels).item())
    """,
}


def driver(name: str) -> Callable[[Path], None]:
    """What writes `drive.py`, the program that trains the models of repository `name`, into a folder."""

    def write(folder: Path) -> None:
        for file, text in {"training.py": _TRAINING, "drive.py": _DRIVERS[name]}.items():
            (folder / file).write_text(textwrap.dedent(text).lstrip("\n"))

    return write
