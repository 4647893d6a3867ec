"""A graph convolutional network finds the communities of a network from a few known members; its edges are a sparse tensor."""

import argparse

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

MEMBERS, COMMUNITIES, FEATURES = 240, 4, 16


def network() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Who belongs to which community, who knows whom (often within a community, seldom across), and traits of each."""
    community = torch.arange(MEMBERS) % COMMUNITIES
    same = community.unsqueeze(1) == community
    known = torch.rand(MEMBERS, MEMBERS) < torch.where(same, 0.10, 0.01)
    edges = (known | known.T).nonzero().T
    traits = torch.randn(COMMUNITIES, FEATURES)[community] + 3.0 * torch.randn(MEMBERS, FEATURES)
    return community, edges, traits


def normalised(edges: torch.Tensor) -> torch.Tensor:
    """The adjacency matrix with loops, each edge divided by the roots of the degrees at its ends, as a sparse tensor."""
    loops = torch.arange(MEMBERS).expand(2, -1)
    edges = torch.cat([edges, loops], dim=1)
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (MEMBERS, MEMBERS), check_invariants=True).coalesce()
    ends = adjacency.indices()
    degrees = torch.sparse.sum(adjacency, dim=1).to_dense()
    weights = adjacency.values() / (degrees[ends[0]] * degrees[ends[1]]).sqrt()
    return torch.sparse_coo_tensor(ends, weights, adjacency.shape, is_coalesced=True, check_invariants=True)


class GraphConvolution(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        return torch.sparse.mm(adjacency, self.linear(x))


class GCN(nn.Module):
    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.first = GraphConvolution(FEATURES, hidden)
        self.second = GraphConvolution(hidden, COMMUNITIES)

    def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.first(x, adjacency))
        return self.second(F.dropout(x, 0.2, self.training), adjacency)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    community, edges, traits = network()
    adjacency = normalised(edges)
    print(adjacency)
    known = torch.randperm(MEMBERS)[:40]
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)

    for step in range(options.steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(traits, adjacency)[known], community[known])
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    model.eval()
    with torch.no_grad():
        right = model(traits, adjacency).argmax(dim=1) == community
    print(f"accuracy {right.float().mean().item():.3f} from {len(known)} of {MEMBERS} members")


if __name__ == "__main__":
    main()
