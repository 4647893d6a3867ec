"""REINFORCE with a learned baseline: a policy learns to balance poles on carts, many at a time."""

import argparse

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

CARTS, LONGEST, DISCOUNT = 16, 40, 0.97


class Poles:
    """Poles on carts that are pushed to the left or to the right; a pole that leans too far has fallen."""

    def __init__(self, count: int) -> None:
        self.state = 0.1 * torch.rand(count, 4) - 0.05  # place, speed, angle, angular speed
        self.standing = torch.ones(count, dtype=torch.bool)

    def push(self, actions: torch.Tensor) -> torch.Tensor:
        """Let a fiftieth of a second pass; a reward of one for each pole that still stands."""
        _, speed, angle, turning = self.state.unbind(dim=1)
        force = 20.0 * actions - 10.0
        inertia = (force + 0.05 * turning**2 * torch.sin(angle)) / 1.1
        lean = (9.8 * torch.sin(angle) - torch.cos(angle) * inertia) / (0.5 * (4 / 3 - 0.1 * torch.cos(angle) ** 2 / 1.1))
        acceleration = inertia - 0.05 * lean * torch.cos(angle) / 1.1
        change = torch.stack([speed, acceleration, turning, lean], dim=1)
        self.state = torch.where(self.standing.unsqueeze(1), self.state + 0.02 * change, self.state)
        self.standing &= self.state[:, 2].abs() < 0.2
        return self.standing.float()


class Agent(nn.Module):
    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh())
        self.policy = nn.Linear(hidden, 1)
        self.value = nn.Linear(hidden, 1)

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The logit of a push to the right, and the return to expect."""
        h = self.body(state)
        return self.policy(h).squeeze(-1), self.value(h).squeeze(-1)


@torch.no_grad()
def play(agent: Agent) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States, actions and rewards of an episode, time first."""
    poles = Poles(CARTS)
    states, actions, rewards = [], [], []
    for _ in range(LONGEST):
        logits, _ = agent(poles.state)
        states.append(poles.state)
        actions.append(torch.bernoulli(logits.sigmoid()))
        rewards.append(poles.push(actions[-1]))
    return torch.stack(states), torch.stack(actions), torch.stack(rewards)


def discounted(rewards: torch.Tensor) -> torch.Tensor:
    """At each time what is still to come, later rewards counting less."""
    returns = torch.zeros_like(rewards)
    to_come = torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        to_come = rewards[t] + DISCOUNT * to_come
        returns[t] = to_come
    return returns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="episodes to learn from")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)

    for step in range(options.steps):
        states, actions, rewards = play(agent)
        returns, played = discounted(rewards), rewards > 0
        optimizer.zero_grad()
        logits, values = agent(states[played])
        advantages = returns[played] - values.detach()
        advantages = (advantages - advantages.mean()) / advantages.std()
        surprise = F.binary_cross_entropy_with_logits(logits, actions[played], reduction="none")
        loss = (surprise * advantages).mean() + 0.01 * F.mse_loss(values, returns[played])
        loss.backward()
        optimizer.step()
        if step % 3 == 0 or step == options.steps - 1:
            fallen = 1 - rewards.mean().item()
            print(f"step {step:3d}  loss {loss.item():.6f}  fallen for {fallen:.3f} of the time")


if __name__ == "__main__":
    main()
