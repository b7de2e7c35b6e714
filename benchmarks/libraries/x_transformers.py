"""training 19 variants of a decoder, generation, a vision transformer, an encoder-decoder, a continuous model"""

import torch
from torch.nn.functional import cross_entropy
from x_transformers import AutoregressiveWrapper, ContinuousTransformerWrapper, Decoder, Encoder, TransformerWrapper, ViTransformerWrapper, XTransformer

VARIANTS = {
    "plain": {},
    "flash": {"attn_flash": True},
    "rotary": {"rotary_pos_emb": True},
    "rotary xpos": {"rotary_xpos": True},
    "alibi": {"alibi_pos_bias": True},
    "T5 bias": {"rel_pos_bias": True},
    "dynamic bias": {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": False},
    "SwiGLU": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
    "squared ReLU": {"ff_relu_squared": True},
    "query norm": {"attn_qk_norm": True},
    "one key head": {"attn_one_kv_head": True},
    "memory": {"attn_num_mem_kv": 4},
    "top 4": {"attn_sparse_topk": 4},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "sandwich": {"sandwich_norm": True},
    "residual attention": {"residual_attn": True},
    "scaled": {"use_scalenorm": True, "scale_residual": True},
    "shift": {"shift_tokens": 1},
    "dropout": {"attn_dropout": 0.1, "ff_dropout": 0.1},
}
LAYERS = {"dim": 32, "depth": 2, "heads": 4}


def train(name, model, loss_of):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(name, sum(p.numel() for p in model.parameters()), "parameters,", len(model.state_dict()), "entries")
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        print(f"{name} step {step} loss {loss.item():.5f} norm {norm.item():.4f}")
    return model.eval()


torch.manual_seed(0)
tokens = torch.randint(0, 64, (2, 33))
for name, options in VARIANTS.items():
    decoder = Decoder(**LAYERS, attn_dim_head=8, **options)
    wrapper = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=decoder)
    model = train(name, AutoregressiveWrapper(wrapper), lambda model: model(tokens))
    if name in ("plain", "rotary", "alibi", "one key head"):
        print(name, "sampled", model.generate(tokens[:, :4], 8).tolist())
        print(name, "greedy", model.generate(tokens[:, :4], 8, temperature=0.0).tolist())
images = torch.randn(2, 3, 16, 16)
vision = ViTransformerWrapper(image_size=16, patch_size=4, num_classes=5, attn_layers=Encoder(**LAYERS))
train("vision", vision, lambda model: cross_entropy(model(images), torch.tensor([1, 3])))
sides = {f"{side}_{key}": n for side in ("enc", "dec") for key, n in (("num_tokens", 64), ("depth", 1), ("heads", 4), ("max_seq_len", 40))}
train("encoder-decoder", XTransformer(dim=32, tie_token_emb=True, **sides), lambda model: model(tokens, tokens))
series = torch.randn(2, 10, 8)
continuous = ContinuousTransformerWrapper(dim_in=8, dim_out=4, max_seq_len=40, attn_layers=Encoder(**LAYERS))
train("continuous", continuous, lambda model: model(series).pow(2).mean())
