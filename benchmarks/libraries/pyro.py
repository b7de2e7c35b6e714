"""variational inference with four guides, a Bayesian network, enumeration, a normalizing flow, HMC, NUTS

NUTS in float32 amplifies rounding: a last digit changes where a trajectory turns, and every sample after it. In
float64 (the last lines) the samples are torch's.
"""

import pyro
import pyro.distributions as dist
import torch
from pyro.distributions import transforms
from pyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoLowRankMultivariateNormal, AutoMultivariateNormal, AutoNormal
from pyro.nn import PyroModule, PyroSample
from torch import nn


def regression(x, y=None):
    weight = pyro.sample("weight", dist.Normal(x.new_zeros(3), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(x.new_zeros(()), 1.0))
    noise = pyro.sample("noise", dist.HalfNormal(x.new_ones(())))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, noise), obs=y)


class Network(PyroModule):
    def __init__(self):
        super().__init__()
        self.linear = PyroModule[nn.Linear](3, 1)
        self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 3]).to_event(2))
        self.linear.bias = PyroSample(dist.Normal(0.0, 10.0).expand([1]).to_event(1))

    def forward(self, x, y=None):
        noise = pyro.sample("noise", dist.Uniform(0.0, 10.0))
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", len(x)):
            pyro.sample("y", dist.Normal(mean, noise), obs=y)
        return mean


@config_enumerate
def mixture(data):
    weights = pyro.param("weights", torch.ones(2) / 2, constraint=dist.constraints.simplex)
    centers = pyro.param("centers", torch.tensor([-1.0, 1.0]))
    with pyro.plate("data", len(data)):
        component = pyro.sample("component", dist.Categorical(weights))
        pyro.sample("x", dist.Normal(centers[component], 1.0), obs=data)


def infer(name, model, guide, loss, *data):
    pyro.clear_param_store()
    inference = SVI(model, guide, pyro.optim.ClippedAdam({"lr": 0.05, "lrd": 0.999}), loss)
    losses = [inference.step(*data) for _ in range(60)]
    print(name, "losses", [round(loss, 3) for loss in losses[::10]])
    for parameter, value in sorted(pyro.get_param_store().items()):
        print(name, parameter, value.detach().flatten()[:4])


pyro.set_rng_seed(0)
x = torch.randn(60, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 + 0.1 * torch.randn(60)
for kind in (AutoNormal, AutoMultivariateNormal, AutoDelta, AutoLowRankMultivariateNormal):
    infer(kind.__name__, regression, kind(regression), Trace_ELBO(), x, y)
infer("mean field", regression, AutoNormal(regression), TraceMeanField_ELBO(num_particles=2), x, y)
network = Network()
network_guide = AutoNormal(network)
infer("network", network, network_guide, Trace_ELBO(), x, y)
print("predicted", Predictive(network, guide=network_guide, num_samples=20)(x[:3])["y"].mean(0))
clusters = torch.cat([torch.randn(30) - 3, torch.randn(30) + 3])
infer("mixture", mixture, lambda data: None, TraceEnum_ELBO(max_plate_nesting=1), clusters)

pyro.set_rng_seed(1)
layers = [transforms.spline_coupling(2, count_bins=4), transforms.affine_autoregressive(2, hidden_dims=[8])]
flow = dist.TransformedDistribution(dist.Normal(torch.zeros(2), torch.ones(2)), layers)
optimizer = torch.optim.Adam(nn.ModuleList(layers).parameters(), lr=5e-3)
points = 0.3 * torch.randn(50, 2) + 1
for step in range(6):
    optimizer.zero_grad()
    loss = -flow.log_prob(points).mean()
    loss.backward()
    optimizer.step()
    flow.clear_cache()
    print(f"flow step {step} loss {loss.item():.4f}")
print("flow samples", flow.sample((2,)))

for dtype in (torch.float32, torch.float64):
    torch.set_default_dtype(dtype)
    for kernel in (HMC(regression, step_size=0.02, num_steps=5), NUTS(regression)):
        pyro.set_rng_seed(5)
        chain = MCMC(kernel, num_samples=10, warmup_steps=10, disable_progbar=True)
        chain.run(x[:20].to(dtype), y[:20].to(dtype))
        for parameter, samples in chain.get_samples().items():
            print(type(kernel).__name__, dtype, parameter, samples[-2:], samples.mean(0))
