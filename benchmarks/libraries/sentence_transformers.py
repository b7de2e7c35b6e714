"""a model of modules, its Trainer with an evaluator, saving, 11 losses, a cross-encoder, semantic search, clusters"""

from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import (
    CrossEncoder,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
    models,
    util,
)
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast, PrinterCallback

torch.manual_seed(0)
SPECIAL = "[PAD] [UNK] [CLS] [SEP]".split()
WORDS = "the a cat dog sat ran on mat road man woman eats drinks bread water plays guitar piano in park".split()
SENTENCES = [
    "the cat sat on the mat",
    "a dog ran on the road",
    "the man eats bread",
    "a woman drinks water",
    "the man plays guitar in the park",
    "a woman plays piano",
]
vocabulary = {word: i for i, word in enumerate(SPECIAL + WORDS)}
words = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", model_max_length=32
)
size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 32}
BertModel(BertConfig(vocab_size=len(vocabulary), **size)).save_pretrained("bert")
tokenizer.save_pretrained("bert")
parts = [
    models.Transformer("bert", max_seq_length=16),
    models.Pooling(32, "mean"),
    models.Dense(32, 16, activation_function=torch.nn.Tanh()),
    models.Normalize(),
]
model = SentenceTransformer(modules=parts, device="cpu")
print(model)
print(model.encode(SENTENCES, batch_size=4)[:, :4].round(4))
print(util.cos_sim(model.encode(SENTENCES), model.encode(SENTENCES[:2])))

pairs = [(a, b, 1.0 if i // 2 == j // 2 else 0.1) for i, a in enumerate(SENTENCES) for j, b in enumerate(SENTENCES) if i < j]
first, second, scores = map(list, zip(*pairs))
evaluator = EmbeddingSimilarityEvaluator(first, second, scores, name="dev")
settings = SentenceTransformerTrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=5, learning_rate=2e-3, logging_steps=3, report_to=[], seed=1,
    save_strategy="no", disable_tqdm=True, use_cpu=True, warmup_steps=2,
)  # fmt: skip
data = Dataset.from_dict({"sentence1": first, "sentence2": second, "score": scores})
trainer = SentenceTransformerTrainer(model, settings, data, loss=losses.CoSENTLoss(model), evaluator=evaluator)
trainer.remove_callback(PrinterCallback)
print("before", {k: f"{v:.4f}" for k, v in evaluator(model).items()})
trainer.train()
for entry in trainer.state.log_history:
    print({k: v for k, v in entry.items() if "second" not in k and "runtime" not in k})
print("after", {k: f"{v:.4f}" for k, v in evaluator(model).items()})
model.save("saved")
again = SentenceTransformer("saved", device="cpu")
print("saved", np.abs(again.encode(SENTENCES) - model.encode(SENTENCES)).max() < 1e-6, Path("saved/2_Dense/config.json").read_text())

two, three = (SENTENCES[:4], SENTENCES[2:]), (SENTENCES[:4], SENTENCES[2:], SENTENCES[1:5])
some, none = torch.tensor([0.1, 0.9, 0.5, 0.3]), torch.zeros(4)
ranking = losses.MultipleNegativesRankingLoss(model)
for loss, columns, labels in (
    (ranking, three, none),
    (losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2), three, none),
    (losses.MatryoshkaLoss(model, ranking, [16, 8, 4]), three, none),
    (losses.TripletLoss(model), three, none),
    (losses.CosineSimilarityLoss(model), two, some),
    (losses.AnglELoss(model), two, some),
    (losses.ContrastiveLoss(model), two, torch.tensor([0, 1, 0, 1])),
    (losses.SoftmaxLoss(model, 16, 3), two, torch.tensor([0, 1, 2, 0])),
    (losses.MegaBatchMarginLoss(model), two, none),
    (losses.MSELoss(model), two[:1], torch.ones(4, 16)),
    (losses.BatchAllTripletLoss(model), two[:1], torch.tensor([0, 0, 1, 1])),
):
    model.zero_grad()
    torch.manual_seed(3)
    value = loss([model.preprocess(column) for column in columns], labels)
    value.backward()
    norm = sum(p.grad.square().sum() for p in model.parameters() if p.grad is not None).sqrt()
    print(type(loss).__name__, f"{value.item():.5f} {norm.item():.4f}")

torch.manual_seed(0)
BertForSequenceClassification(BertConfig(vocab_size=len(vocabulary), num_labels=1, **size)).save_pretrained("cross")
tokenizer.save_pretrained("cross")
cross = CrossEncoder("cross", device="cpu", num_labels=1, max_length=24)
print(cross.predict([pair[:2] for pair in pairs[:3]]), cross.rank(SENTENCES[0], SENTENCES[1:])[:2])
print(util.semantic_search(model.encode(SENTENCES[:2], convert_to_tensor=True), model.encode(SENTENCES, convert_to_tensor=True), top_k=2))
print(util.community_detection(torch.from_numpy(model.encode(SENTENCES)), min_community_size=1, threshold=0.5))
