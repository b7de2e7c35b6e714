"""Transformers of text and speech (transformers' models from configurations), recurrent taggers, attention in a loop, CTC."""
from __future__ import annotations

import torch
from torch import nn

from .common import F, steps

SMALL = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 2000}


def _language_model(model, batch=4, length=64, vocabulary=2000, **more):
    ids = torch.randint(5, vocabulary, (batch, length))
    loss = lambda out: F.cross_entropy(out[:, :-1].reshape(-1, vocabulary), ids[:, 1:].reshape(-1))
    return steps(model, {"input_ids": ids, **more}, loss, torch.optim.AdamW(model.parameters(), 1e-4), result=lambda out: out.logits)


def bert():
    from transformers import BertConfig, BertForMaskedLM
    return _language_model(BertForMaskedLM(BertConfig(**SMALL)), attention_mask=torch.ones(4, 64, dtype=torch.long))


def _gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(vocab_size=2000, n_positions=128, n_embd=128, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0))


def gpt2():
    return _language_model(_gpt2())


def _llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=2))


def llama():
    return _language_model(_llama())


def _generation(model):
    """16 tokens greedily after a prompt of 16, with a cache of keys and values."""
    model.generation_config.eos_token_id = None
    ids = torch.randint(5, 2000, (1, 16))

    def forward():
        with torch.no_grad():
            return model.generate(ids, max_new_tokens=16, do_sample=False, pad_token_id=0).sum().item()
    return {"forward": (model.eval, forward)}


def gpt2_generate():
    return _generation(_gpt2())


def llama_generate():
    return _generation(_llama())


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(T5Config(vocab_size=2000, d_model=128, d_kv=32, d_ff=512, num_layers=2, num_heads=4, decoder_start_token_id=0))
    return _language_model(model, decoder_input_ids=torch.randint(5, 2000, (4, 64)))


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=2000, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=512,
        decoder_ffn_dim=512, num_mel_bins=80, max_source_positions=150, max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=3, suppress_tokens=[], begin_suppress_tokens=[]))
    y = torch.randint(5, 2000, (2, 32))
    return steps(model, {"input_features": torch.randn(2, 80, 300), "decoder_input_ids": y}, lambda out: F.cross_entropy(out.flatten(0, 1), y.flatten()),
                 torch.optim.AdamW(model.parameters(), 1e-4), result=lambda out: out.logits)


def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC
    model = Wav2Vec2ForCTC(Wav2Vec2Config(vocab_size=32, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256,
                                          conv_dim=(64,) * 7, num_conv_pos_embeddings=32, num_conv_pos_embedding_groups=4, mask_time_prob=0.0,
                                          mask_feature_prob=0.0, layerdrop=0.0))
    y = torch.randint(1, 32, (2, 10))

    def loss(out):
        return F.ctc_loss(out.log_softmax(-1).transpose(0, 1), y, torch.full((2,), out.shape[1]), torch.full((2,), 10))
    return steps(model, (torch.randn(2, 8000),), loss, torch.optim.AdamW(model.parameters(), 1e-4), result=lambda out: out.logits)


def clip():
    from transformers import CLIPConfig, CLIPModel
    text = {**SMALL, "num_hidden_layers": 2, "max_position_embeddings": 32, "eos_token_id": 1999, "bos_token_id": 0, "pad_token_id": 1}
    vision = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512, "image_size": 64, "patch_size": 8}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=64))
    inputs = {"input_ids": torch.randint(5, 2000, (8, 16)), "pixel_values": torch.randn(8, 3, 64, 64)}
    y = torch.arange(8)
    return steps(model, inputs, lambda out: (F.cross_entropy(out, y) + F.cross_entropy(out.t(), y)) / 2, torch.optim.AdamW(model.parameters(), 1e-4),
                 result=lambda out: out.logits_per_image)


def transformer_layers():
    """torch.nn's own encoder and decoder, with a padding mask and a causal one."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(1000, 128), nn.Linear(128, 1000)
            self.body = nn.Transformer(128, 4, 2, 2, 512, dropout=0.1, batch_first=True)

        def forward(self, source, target):
            causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            return self.head(self.body(self.embed(source), self.embed(target), tgt_mask=causal, src_key_padding_mask=source == 0))
    model, source, y = Model(), torch.randint(1, 1000, (8, 32)), torch.randint(1, 1000, (8, 32))
    source[:, 28:] = 0
    return steps(model, (source, y), lambda out: F.cross_entropy(out.flatten(0, 1), y.flatten()), torch.optim.Adam(model.parameters(), 1e-4))


def _tagger(cell):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.body, self.head = nn.Embedding(2000, 64), cell(64, 64, batch_first=True, bidirectional=True), nn.Linear(128, 20)

        def forward(self, ids):
            return self.head(self.body(self.embed(ids))[0])
    model, ids, y = Tagger(), torch.randint(0, 2000, (16, 40)), torch.randint(0, 20, (16, 40))
    return steps(model, (ids,), lambda out: F.cross_entropy(out.flatten(0, 1), y.flatten()), torch.optim.Adam(model.parameters(), 1e-3))


def lstm_tagger():
    return _tagger(nn.LSTM)


def gru_tagger():
    return _tagger(nn.GRU)


def packed_lstm():
    """A classifier of padded sequences of different lengths, packed."""
    from torch.nn.utils.rnn import pack_padded_sequence

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.body, self.head = nn.Embedding(2000, 64), nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 2)

        def forward(self, ids, lengths):
            return self.head(self.body(pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False))[1][0][-1])
    model, ids, y = Model(), torch.randint(0, 2000, (16, 40)), torch.randint(0, 2, (16,))
    return steps(model, (ids, torch.arange(10, 42, 2)), lambda out: F.cross_entropy(out, y), torch.optim.Adam(model.parameters(), 1e-3))


def seq2seq():
    """The tutorial's translator: a GRU, then a decoder with additive attention, a word at a time."""
    class Model(nn.Module):
        def __init__(self, d=128, words=500):
            super().__init__()
            self.source, self.target, self.encoder, self.cell = nn.Embedding(words, d), nn.Embedding(words, d), nn.GRU(d, d, batch_first=True), nn.GRUCell(2 * d, d)
            self.query, self.key, self.score, self.head = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 1), nn.Linear(d, words)

        def forward(self, x, y):
            keys, h = self.encoder(self.source(x))
            h, out = h[0], []
            for k in range(y.shape[1]):
                weights = self.score(torch.tanh(self.query(h)[:, None] + self.key(keys))).softmax(1)
                h = self.cell(torch.cat([self.target(y[:, k]), (weights * keys).sum(1)], 1), h)
                out.append(self.head(h))
            return torch.stack(out, 1)
    model, x, y = Model(), torch.randint(0, 500, (16, 12)), torch.randint(0, 500, (16, 12))
    return steps(model, (x, y), lambda out: F.cross_entropy(out.flatten(0, 1), y.flatten()), torch.optim.Adam(model.parameters(), 1e-3))


def ctc_speech():
    """Spectrogram, convolutions, a bidirectional GRU and CTC, as DeepSpeech 2."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.front = nn.Sequential(nn.Conv2d(1, 16, (11, 11), (2, 2), (5, 5)), nn.BatchNorm2d(16), nn.Hardtanh(0, 20), nn.Conv2d(16, 16, (11, 11), (2, 1), (5, 5)),
                                       nn.BatchNorm2d(16), nn.Hardtanh(0, 20))
            self.body, self.head = nn.GRU(16 * 17, 96, 2, batch_first=True, bidirectional=True), nn.Linear(192, 29)

        def forward(self, waves):
            window = torch.hann_window(128)
            x = torch.log1p(torch.stft(waves, 128, 64, window=window, return_complex=True).abs())[:, None]
            x = self.front(x).flatten(1, 2).transpose(1, 2)
            return self.head(self.body(x)[0]).log_softmax(-1)
    model, y = Model(), torch.randint(1, 29, (4, 12))
    loss = lambda out: F.ctc_loss(out.transpose(0, 1), y, torch.full((4,), out.shape[1]), torch.full((4,), 12))
    return steps(model, (torch.randn(4, 8000),), loss, torch.optim.Adam(model.parameters(), 1e-3))


def conformer():
    """Conformer blocks: half a feed-forward layer, attention, a gated depthwise convolution over time, the other half."""
    class Block(nn.Module):
        def __init__(self, d=96, kernel=15):
            super().__init__()
            half = lambda: nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * d, d))
            self.first, self.last, self.norm, self.out = half(), half(), nn.LayerNorm(d), nn.LayerNorm(d)
            self.attention = nn.MultiheadAttention(d, 4, batch_first=True)
            self.mix = nn.Sequential(nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, kernel, padding=kernel // 2, groups=d), nn.BatchNorm1d(d), nn.SiLU(),
                                     nn.Conv1d(d, d, 1))

        def forward(self, x):
            x = x + 0.5 * self.first(x)
            y = self.norm(x)
            x = x + self.attention(y, y, y, need_weights=False)[0]
            x = x + self.mix(x.transpose(1, 2)).transpose(1, 2)
            return self.out(x + 0.5 * self.last(x))
    model = nn.Sequential(Block(), Block())
    return steps(model, (torch.randn(4, 80, 96),), lambda out: out.pow(3).mean(), torch.optim.Adam(model.parameters(), 1e-4))


def mamba():
    from mambapy.mamba import Mamba, MambaConfig
    model, x = Mamba(MambaConfig(d_model=48, n_layers=2)), torch.randn(2, 64, 48)
    return steps(model, (x,), lambda out: out.square().mean(), torch.optim.Adam(model.parameters(), 1e-4))


def x_transformer():
    from x_transformers import Decoder, TransformerWrapper
    model = TransformerWrapper(num_tokens=1000, max_seq_len=64, attn_layers=Decoder(dim=128, depth=3, heads=4, rotary_pos_emb=True))
    ids = torch.randint(0, 1000, (4, 64))
    return steps(model, (ids,), lambda out: F.cross_entropy(out.flatten(0, 1), ids.flatten()), torch.optim.Adam(model.parameters(), 1e-4))
