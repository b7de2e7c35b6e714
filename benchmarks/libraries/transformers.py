"""training, generating with and reloading GPT-2, Llama, Mixtral, T5, Whisper; BERT, ViT, CLIP, wav2vec2; Trainer, Seq2SeqTrainer

One run of the Trainer prints losses that differ in the sixth digit and norms of gradients that differ in the fourth.
"""

import numpy as np
import torch
import transformers as tf
from transformers.trainer_callback import PrinterCallback

SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
LANGUAGE = {**SMALL, "vocab_size": 99, "max_position_embeddings": 64}
T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
HEADS = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
WHISPER = {"vocab_size": 99, **HEADS, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_mel_bins": 20, "max_source_positions": 30}
WHISPER |= {"max_target_positions": 40, "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None, **SPECIAL}
VISION = {**SMALL, "image_size": 16, "patch_size": 4}
CLIP = {"text_config": {**LANGUAGE, "eos_token_id": 98}, "vision_config": VISION, "projection_dim": 16}
SPEECH = {**SMALL, "vocab_size": 32, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3)}
SPEECH |= {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "ctc_loss_reduction": "mean"}


def check(kind, config, batch, prompt=None):
    tf.set_seed(0)
    model = kind(config)
    name = kind.__name__
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    print(name, sum(p.numel() for p in model.parameters()), "parameters,", len(model.state_dict()), "entries")
    for step in range(5):
        loss = model.train()(**batch).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"{name} step {step} loss {loss.item():.5f} norm {norm.item():.4f}")
    if prompt is not None:
        for options in ({"do_sample": False}, {"do_sample": True, "top_k": 20, "top_p": 0.9}, {"do_sample": False, "num_beams": 3}):
            print(name, options, model.eval().generate(**prompt, max_new_tokens=8, **options).tolist())
    model.save_pretrained(name)
    loaded = kind.from_pretrained(name)
    print(name, "reloaded", loaded.training, f"{loaded(**batch).loss.item():.5f}", kind.from_pretrained(name, dtype=torch.bfloat16).dtype)
    print(name, "next random number", torch.rand(()))


def report(trainer):
    trainer.remove_callback(PrinterCallback)  # it prints how long each epoch took
    trainer.train()
    for entry in trainer.state.log_history:
        print({key: value for key, value in entry.items() if not key.endswith(("runtime", "per_second", "flos"))})


tf.set_seed(0)
tokens = torch.randint(3, 99, (2, 12))
prompt = {"input_ids": tokens[:, :5], "attention_mask": torch.ones_like(tokens[:, :5])}
text = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens}
images = torch.randn(2, 3, 16, 16)
spectrum = torch.randn(2, 20, 60)
check(tf.GPT2LMHeadModel, tf.GPT2Config(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, **SPECIAL), text, prompt)
check(tf.LlamaForCausalLM, tf.LlamaConfig(num_key_value_heads=2, **SPECIAL, **LANGUAGE), text, prompt)
check(tf.MixtralForCausalLM, tf.MixtralConfig(num_key_value_heads=2, num_local_experts=4, **SPECIAL, **LANGUAGE), text, prompt)
check(tf.T5ForConditionalGeneration, tf.T5Config(**T5), text, prompt)
speech = {"input_features": spectrum, "labels": tokens[:, :6]}
check(tf.WhisperForConditionalGeneration, tf.WhisperConfig(**WHISPER), speech, {"input_features": spectrum})
check(tf.BertForMaskedLM, tf.BertConfig(**LANGUAGE), text)
check(tf.ViTForImageClassification, tf.ViTConfig(**VISION, num_labels=5), {"pixel_values": images, "labels": torch.tensor([0, 3])})
check(tf.CLIPModel, tf.CLIPConfig(**CLIP), {"input_ids": tokens, "pixel_values": images, "return_loss": True})
tf.set_seed(0)
sound = {"input_values": torch.randn(2, 800), "labels": torch.randint(3, 30, (2, 3))}
check(tf.Wav2Vec2ForCTC, tf.Wav2Vec2Config(**SPEECH, mask_time_prob=0.1, mask_time_length=3), sound)

tf.set_seed(0)
rows = torch.randint(3, 60, (64, 10))
labelled = [{"input_ids": row, "labels": (row.float().mean() > 31).long()} for row in rows]
options = {"per_device_train_batch_size": 8, "learning_rate": 2e-3, "logging_steps": 4, "report_to": [], "use_cpu": True, "disable_tqdm": True}
staged = {"num_train_epochs": 3, "eval_strategy": "epoch", "save_strategy": "epoch", "gradient_accumulation_steps": 2}
schedule = {"lr_scheduler_type": "cosine", "warmup_steps": 3, "weight_decay": 0.01, "load_best_model_at_end": True}
arguments = tf.TrainingArguments("bert", **options, **staged, **schedule)
model = tf.BertForSequenceClassification(tf.BertConfig(**LANGUAGE))
trainer = tf.Trainer(model, arguments, train_dataset=labelled, eval_dataset=labelled[:16], callbacks=[tf.EarlyStoppingCallback(3)])
report(trainer)
print("predicted", trainer.predict(labelled[:8]).predictions)
for extra in ({"optim": "adafactor"}, {"label_smoothing_factor": 0.1}, {"gradient_checkpointing": True}, {"bf16": True}, {"neftune_noise_alpha": 5.0}):
    tf.set_seed(1)
    model = tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, **SPECIAL))
    print(extra)
    report(tf.Trainer(model, tf.TrainingArguments("gpt", max_steps=8, **options, **extra), train_dataset=[{"input_ids": row, "labels": row} for row in rows]))
pairs = [{"input_ids": row, "labels": row[:5]} for row in rows[:16]]
generation = {"predict_with_generate": True, "generation_max_length": 6, "eval_strategy": "epoch", "num_train_epochs": 2}
arguments = tf.Seq2SeqTrainingArguments("t5", **options, **generation)


def count(prediction):
    return {"tokens": int(np.sum(prediction.predictions > 0))}


report(tf.Seq2SeqTrainer(tf.T5ForConditionalGeneration(tf.T5Config(**T5)), arguments, train_dataset=pairs, eval_dataset=pairs, compute_metrics=count))
