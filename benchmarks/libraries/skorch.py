"""a classifier with callbacks, saving and pickling, a scikit-learn grid search, a regressor, a binary classifier"""

import pickle

import numpy as np
import torch
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import Checkpoint, EarlyStopping, EpochScoring, GradientNormClipping, LRScheduler
from torch import nn


class Network(nn.Module):
    def __init__(self, units=10):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(20, units), nn.ReLU(), nn.Dropout(0.5), nn.Linear(units, units), nn.ReLU())
        self.output = nn.Linear(units, 2)

    def forward(self, x):
        return self.output(self.hidden(x)).softmax(-1)


torch.manual_seed(0)
x, y = make_classification(400, 20, n_informative=10, random_state=0)
x = x.astype(np.float32)
callbacks = [
    EpochScoring("roc_auc", lower_is_better=False),
    Checkpoint(dirname="checkpoints", monitor="valid_loss_best"),
    LRScheduler("StepLR", step_size=2),
    GradientNormClipping(1.0),
    EarlyStopping(patience=5),
]
classifier = NeuralNetClassifier(Network, max_epochs=6, lr=0.1, iterator_train__shuffle=True, verbose=0, callbacks=callbacks)
classifier.fit(x, y)
for epoch in classifier.history:
    print([f"{epoch[name]:.5f}" for name in ("train_loss", "valid_loss", "valid_acc", "roc_auc")])
print(classifier.predict(x[:10]), classifier.predict_proba(x[:2]))
print(classifier)
classifier.save_params(f_params="weights.pt", f_optimizer="optimizer.pt", f_history="history.json")
loaded = NeuralNetClassifier(Network).initialize()
loaded.load_params(f_params="weights.pt")
print("loaded", loaded.predict_proba(x[:2]))
print("pickled", pickle.loads(pickle.dumps(classifier)).predict_proba(x[:2]))

network = NeuralNetClassifier(Network, max_epochs=3, verbose=0, train_split=False)
choices = {"neuralnetclassifier__lr": [0.05, 0.1], "neuralnetclassifier__module__units": [5, 10]}
search = GridSearchCV(make_pipeline(StandardScaler(), network), choices, cv=2, scoring="accuracy").fit(x, y)
print("search", search.best_params_, search.cv_results_["mean_test_score"])

xr, yr = make_regression(200, 20, random_state=0)
xr = xr.astype(np.float32)
yr = (yr[:, None] / 100).astype(np.float32)
network = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 1))
regressor = NeuralNetRegressor(network, max_epochs=5, optimizer=torch.optim.Adam, lr=0.02, verbose=0).fit(xr, yr)
print("regression", np.round(regressor.history[:, "valid_loss"], 5), round(regressor.score(xr, yr), 5))
network = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0))
binary = NeuralNetBinaryClassifier(network, max_epochs=4, lr=0.1, batch_size=32, verbose=0).fit(x, y.astype(np.float32))
print("binary", np.round(binary.history[:, "train_loss"], 5), binary.predict(x[:8]))
