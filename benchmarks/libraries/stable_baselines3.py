"""PPO, A2C, DQN on CartPole; SAC, TD3 on Pendulum; saving, loading, a replay buffer, an evaluation"""

import gymnasium
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

OFF_POLICY = {"learning_starts": 100, "batch_size": 64}


def report(name, model):
    size = sum(p.detach().double().pow(2).sum() for p in model.policy.parameters())
    print(f"{name} weights {size.item():.4f}")
    for key, value in sorted(model.logger.name_to_value.items()):
        if key.startswith("train/"):
            print(f"{name} {key} {value:.4f}")


torch.set_num_threads(1)
environments = make_vec_env("CartPole-v1", n_envs=2, seed=0)
model = PPO("MlpPolicy", environments, n_steps=128, batch_size=64, n_epochs=4, seed=0, device="cpu")
model.learn(1024)
report("PPO", model)
print(model.policy)
model.save("ppo")
loaded = PPO.load("ppo", device="cpu")
test = make_vec_env("CartPole-v1", n_envs=1, seed=1)
print("reward of the loaded", evaluate_policy(loaded, test, n_eval_episodes=2))

model = A2C("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
model.learn(600)
report("A2C", model)
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=200, train_freq=4, target_update_interval=100, seed=0, device="cpu")
model.learn(1200)
report("DQN", model)
model = SAC("MlpPolicy", "Pendulum-v1", seed=0, device="cpu", policy_kwargs={"net_arch": [32, 32]}, **OFF_POLICY)
model.learn(250)
report("SAC", model)
model = TD3("MlpPolicy", "Pendulum-v1", seed=0, device="cpu", policy_kwargs={"net_arch": [32, 32]}, **OFF_POLICY)
model.learn(250)
report("TD3", model)
model.save_replay_buffer("buffer")
model.load_replay_buffer("buffer")
print("buffer", model.replay_buffer.size(), model.replay_buffer.rewards[:5].ravel())
observation, _ = gymnasium.make("Pendulum-v1").reset(seed=0)
print("action", model.predict(observation, deterministic=True)[0])
