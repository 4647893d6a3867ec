"""skorch: a network as an estimator of scikit-learn, alone and in a search."""

import numpy as np
import torch
from report import show
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier


class Net(torch.nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.first, self.second = torch.nn.Linear(20, hidden), torch.nn.Linear(hidden, 2)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


torch.manual_seed(0)
x = np.random.RandomState(0).randn(100, 20).astype("float32")
y = (x[:, 0] > 0).astype("int64")
net = NeuralNetClassifier(Net, max_epochs=3, lr=0.1, verbose=0)
net.fit(x, y)
search = GridSearchCV(net, {"lr": [0.05, 0.1]}, cv=2, scoring="accuracy").fit(x, y)
show(
    losses=net.history[:, "train_loss"],
    valid=net.history[:, "valid_loss"],
    score=float(search.best_score_),
    rate=search.best_params_["lr"],
)
