"""PPO on Pendulum and DQN on CartPole with collectors, buffers and advantages; SAC's losses on random data"""

import logging

import torch
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer, SamplerWithoutReplacement
from torchrl.envs import Compose, DoubleToFloat, GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss, SACLoss, SoftUpdate
from torchrl.objectives.value import GAE

logging.disable(logging.INFO)


def gaussian_actor(width, spec):
    network = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 2), NormalParamExtractor())
    return ProbabilisticActor(
        TensorDictModule(network, ["observation"], ["loc", "scale"]),
        spec=spec,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": -2.0, "high": 2.0},
        return_log_prob=True,
    )


torch.manual_seed(0)
env = TransformedEnv(GymEnv("Pendulum-v1"), Compose(DoubleToFloat(), StepCounter(), RewardSum()))
env.set_seed(0)
print(env.reset()["observation"].shape, env.action_spec.shape, env.rollout(5)["next", "reward"].shape)
policy = gaussian_actor(32, env.action_spec)
value = ValueOperator(nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1)), in_keys=["observation"])
collector = Collector(env, policy, frames_per_batch=128, total_frames=256, split_trajs=False, device="cpu")
buffer = ReplayBuffer(storage=LazyTensorStorage(128), sampler=SamplerWithoutReplacement(), batch_size=64)
advantage = GAE(gamma=0.99, lmbda=0.95, value_network=value, average_gae=True)
losses = ClipPPOLoss(actor_network=policy, critic_network=value, clip_epsilon=0.2, entropy_bonus=True, entropy_coeff=1e-3)
optimizer = torch.optim.Adam(losses.parameters(), 3e-4)
for i, frames in enumerate(collector):
    for _ in range(2):
        advantage(frames)
        buffer.extend(frames.reshape(-1))
        for _ in range(2):
            found = losses(buffer.sample())
            loss = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
            loss.backward()
            torch.nn.utils.clip_grad_norm_(losses.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            print("ppo", i, f"{loss.item():.4f} {found['loss_objective'].item():.4f}")
    print("ppo", i, "reward", f"{frames['next', 'reward'].mean().item():.4f}")
collector.shutdown()

torch.manual_seed(1)
env = TransformedEnv(GymEnv("CartPole-v1", categorical_action_encoding=False), StepCounter())
env.set_seed(1)
q = QValueActor(MLP(in_features=4, out_features=2, num_cells=[32]), in_keys=["observation"], spec=env.action_spec)
greedy = EGreedyModule(env.action_spec, annealing_num_steps=1000, eps_init=0.5)
losses = DQNLoss(q, action_space=env.action_spec, delay_value=True)
losses.make_value_estimator(gamma=0.99)
target = SoftUpdate(losses, eps=0.95)
optimizer = torch.optim.Adam(losses.parameters(), 1e-3)
buffer = ReplayBuffer(storage=LazyTensorStorage(1000), batch_size=32)
collector = Collector(env, TensorDictSequential(q, greedy), frames_per_batch=50, total_frames=200, init_random_frames=50)
for i, frames in enumerate(collector):
    buffer.extend(frames.reshape(-1))
    for _ in range(3):
        loss = losses(buffer.sample())["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        target.step()
    greedy.step(50)
    print("dqn", i, f"{loss.item():.5f}", "ended", frames["next", "done"].sum().item())
collector.shutdown()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, observation, action):
        return self.layers(torch.cat([observation, action], -1))


torch.manual_seed(2)
losses = SACLoss(
    gaussian_actor(16, GymEnv("Pendulum-v1").action_spec),
    ValueOperator(Critic(), in_keys=["observation", "action"]),
    num_qvalue_nets=2,  # two critics, by vmap over stacked parameters
    target_entropy=-1.0,
)
losses.make_value_estimator(gamma=0.99)
target = SoftUpdate(losses, eps=0.99)
optimizer = torch.optim.Adam(losses.parameters(), 1e-3)
ended = torch.zeros(16, 1, dtype=torch.bool)
after = {"observation": torch.randn(16, 3), "reward": torch.randn(16, 1), "done": ended, "terminated": ended}
batch = TensorDict({"observation": torch.randn(16, 3), "action": torch.rand(16, 1), "next": after}, [16])
for step in range(4):
    found = losses(batch)
    loss = found["loss_actor"] + found["loss_qvalue"] + found["loss_alpha"]
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    target.step()
    print("sac", step, f"{loss.item():.5f} {found['loss_qvalue'].item():.5f} {found['entropy'].item():.4f}")
