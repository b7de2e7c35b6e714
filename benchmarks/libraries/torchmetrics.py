"""37 metrics: classification, regression, image, text, audio, retrieval; collections, wrappers, a metric of one's own"""

import pickle

import torch
from torchmetrics import Metric, MetricCollection, SumMetric, classification, regression
from torchmetrics.audio import ScaleInvariantSignalDistortionRatio, SignalNoiseRatio
from torchmetrics.functional import pairwise_cosine_similarity
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure, UniversalImageQualityIndex
from torchmetrics.retrieval import RetrievalMAP, RetrievalNormalizedDCG
from torchmetrics.text import BLEUScore, CharErrorRate, Perplexity, WordErrorRate
from torchmetrics.utilities import dim_zero_cat
from torchmetrics.wrappers import MinMaxMetric, Running

MULTICLASS = "Accuracy F1Score Precision Recall AUROC AveragePrecision ConfusionMatrix CohenKappa MatthewsCorrCoef CalibrationError JaccardIndex Specificity"
BINARY = "Accuracy AUROC F1Score ROC PrecisionRecallCurve MatthewsCorrCoef"
REGRESSION = "MeanSquaredError MeanAbsoluteError R2Score PearsonCorrCoef SpearmanCorrCoef ExplainedVariance KendallRankCorrCoef ConcordanceCorrCoef"

torch.manual_seed(0)
scores = torch.randn(4, 50, 5).softmax(-1)
classes = torch.randint(0, 5, (4, 50))
metrics = MetricCollection([getattr(classification, f"Multiclass{name}")(num_classes=5) for name in MULTICLASS.split()], prefix="val_")
for batch in zip(scores, classes):
    metrics.update(*batch)
for name, value in metrics.compute().items():
    print(name, value)
chances = torch.rand(4, 50)
labels = torch.randint(0, 2, (4, 50))
for name in BINARY.split():
    metric = getattr(classification, f"Binary{name}")()
    for batch in zip(chances, labels):
        metric.update(*batch)
    print(name, metric.compute())
x = torch.randn(4, 50)
y = 0.5 * x + torch.randn(4, 50)
for name in REGRESSION.split():
    metric = getattr(regression, name)()
    for batch in zip(x, y):
        metric.update(*batch)
    print(name, metric.compute())
images = torch.rand(2, 3, 32, 32)
noisy = (images + 0.1 * torch.randn_like(images)).clamp(0, 1)
for metric in (StructuralSimilarityIndexMeasure(data_range=1.0), PeakSignalNoiseRatio(data_range=1.0), UniversalImageQualityIndex()):
    print(type(metric).__name__, metric(images, noisy))
print("BLEU", BLEUScore()(["the cat is on the mat"], [["there is a cat on the mat", "a cat is on the mat"]]))
print("errors", WordErrorRate()(["this is it"], ["this is that"]), CharErrorRate()(["this is it"], ["this is that"]))
print("perplexity", Perplexity()(torch.randn(2, 8, 5), torch.randint(0, 5, (2, 8))))
print("noise", SignalNoiseRatio()(x, y), ScaleInvariantSignalDistortionRatio()(x, y))
queries = torch.arange(50) // 10
print("retrieval", RetrievalMAP()(chances[0], labels[0], queries), RetrievalNormalizedDCG()(chances[0], labels[0], queries))
print("range", MinMaxMetric(classification.BinaryAccuracy())(chances[0], labels[0]))
running = Running(SumMetric(), window=2)
for value in range(4):
    running(torch.tensor(float(value)))
print("running", running.compute())
print("pickled", pickle.loads(pickle.dumps(metrics)).compute()["val_MulticlassAccuracy"])
print("sum", (classification.BinaryAccuracy() + classification.BinaryF1Score())(chances[0], labels[0]))
print("cosine", pairwise_cosine_similarity(x[:, :3], y[:, :3]))


class Spread(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("total", torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("values", [], dist_reduce_fx="cat")

    def update(self, values):
        self.total += values.sum()
        self.values.append(values)

    def compute(self):
        return self.total, dim_zero_cat(self.values).std()


spread = Spread()
print("own", spread(x[0]), spread(x[1]), spread.compute())
try:
    classification.MulticlassAccuracy(num_classes=5)(scores[0], classes[0].float())
except ValueError as error:
    print(error)
