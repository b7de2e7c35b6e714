"""exact GP, multitask GP with a Matern kernel, variational GP for regression and for classification

The variational GPs factor an ill-conditioned kernel matrix in float32, so rounding shows in the second or third digit; in
float64 the rough version of this program agreed to 2e-4.
"""

import math

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import MaternKernel, MultitaskKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, MultitaskMean
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch.utils.data import DataLoader, TensorDataset


class ExactGP(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, mean, kernel, distribution):
        super().__init__(x, y, likelihood)
        self.mean = mean
        self.kernel = kernel
        self.distribution = distribution

    def forward(self, x):
        return self.distribution(self.mean(x), self.kernel(x))


class VariationalGP(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = CholeskyVariationalDistribution(len(points))
        super().__init__(VariationalStrategy(self, points, distribution, learn_inducing_locations=True))
        self.mean = ConstantMean()
        self.kernel = ScaleKernel(RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean(x), self.kernel(x))


def fit(model, likelihood, objective, batches, lr):
    optimizer = torch.optim.Adam(objective.parameters(), lr=lr)
    model.train()
    likelihood.train()
    for step, (x, y) in enumerate(batches):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    likelihood.eval()


torch.manual_seed(0)
x = torch.linspace(0, 1, 60)
y = torch.sin(2 * math.pi * x) + 0.2 * torch.randn(60)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = ExactGP(x, y, likelihood, ConstantMean(), ScaleKernel(RBFKernel()), MultivariateNormal)
fit(model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), [(x, y)] * 30, 0.1)
print("lengthscale", model.kernel.base_kernel.lengthscale, "noise", likelihood.noise)
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    prediction = likelihood(model(torch.linspace(0, 1, 7)))
    print(prediction.mean, prediction.variance, prediction.confidence_region())
print("samples", model(torch.linspace(0, 1, 5)).rsample(torch.Size([2])))

x = torch.rand(40, 2)
y = torch.stack([x.sin().sum(1), x.cos().sum(1)], -1)
likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
kernel = MultitaskKernel(MaternKernel(nu=2.5, ard_num_dims=2), num_tasks=2, rank=1)
model = ExactGP(x, y, likelihood, MultitaskMean(ConstantMean(), num_tasks=2), kernel, MultitaskMultivariateNormal)
fit(model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), [(x, y)] * 10, 0.1)
print("two tasks", likelihood(model(x[:3])).mean)

x = torch.rand(300, 1)
y = torch.sin(6 * x[:, 0]) + 0.1 * torch.randn(300)
for likelihood, target in (
    (gpytorch.likelihoods.GaussianLikelihood(), y),
    (gpytorch.likelihoods.BernoulliLikelihood(), (y > 0).float()),
):
    model = VariationalGP(x[:20].clone())
    batches = [batch for _ in range(6) for batch in DataLoader(TensorDataset(x, target), batch_size=64, shuffle=True)]
    fit(model, likelihood, gpytorch.mlls.VariationalELBO(likelihood, model, num_data=300), batches, 0.03)
    print("variational", likelihood(model(torch.linspace(0, 1, 5)[:, None])).mean)
