"""training with seven convolutions, batches of graphs, message passing, heterogeneous graphs, pooling, transforms, utils"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout
from torch_geometric import nn as gnn
from torch_geometric import utils
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose, NormalizeFeatures, RandomNodeSplit

CONVOLUTIONS = {
    "GCN": gnn.GCNConv,
    "GAT": lambda i, o: gnn.GATConv(i, o, heads=2, concat=False),
    "SAGE": gnn.SAGEConv,
    "GIN": lambda i, o: gnn.GINConv(nn.Linear(i, o)),
    "graph": gnn.GraphConv,
    "transformer": gnn.TransformerConv,
    "Chebyshev": lambda i, o: gnn.ChebConv(i, o, 2),
}


class Nodes(nn.Module):
    def __init__(self, convolution):
        super().__init__()
        self.first = convolution(8, 16)
        self.second = convolution(16, 2)

    def forward(self, x, edges):
        return self.second(dropout(self.first(x, edges).relu(), 0.2, self.training), edges)


class Graphs(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = gnn.GCNConv(8, 16)
        self.norm = gnn.BatchNorm(16)
        self.classify = nn.Linear(48, 2)

    def forward(self, batch):
        hidden = self.norm(self.convolution(batch.x, batch.edge_index)).relu()
        return self.classify(torch.cat([pool(hidden, batch.batch) for pool in (gnn.global_mean_pool, gnn.global_max_pool, gnn.global_add_pool)], 1))


class EdgeConvolution(gnn.MessagePassing):
    def __init__(self):
        super().__init__(aggr="max")
        self.linear = nn.Linear(16, 4)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.linear(torch.cat([x_i, x_j - x_i], 1))


torch.manual_seed(0)
edges = utils.to_undirected(torch.randint(0, 60, (2, 200)))
x = torch.randn(60, 8)
graph = Data(x=x, edge_index=edges, y=(x[:, 0] > 0).long())
print(graph, graph.is_undirected(), graph.has_isolated_nodes())
for name, convolution in CONVOLUTIONS.items():
    model = Nodes(convolution)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for step in range(8):
        optimizer.zero_grad()
        loss = cross_entropy(model(graph.x, graph.edge_index)[:40], graph.y[:40])
        loss.backward()
        optimizer.step()
        print(f"{name} step {step} loss {loss.item():.4f}")
    right = model.eval()(graph.x, graph.edge_index).argmax(1) == graph.y
    print(name, "right", right.sum().item(), list(model.state_dict()))

sizes = torch.randint(4, 9, (24,)).tolist()
graphs = [Data(x=torch.randn(n, 8), edge_index=torch.randint(0, n, (2, 2 * n)), y=torch.tensor([i % 2])) for i, n in enumerate(sizes)]
model = Graphs()
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for batch in DataLoader(graphs * 3, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    loss = cross_entropy(model(batch), batch.y)
    loss.backward()
    optimizer.step()
    print(f"graphs loss {loss.item():.4f}", batch)
print(batch[0], [part.num_nodes for part in batch.to_data_list()], batch.ptr)

print("messages", EdgeConvolution()(x, edges).sum(), "attention", gnn.GAT(8, 16, 2, 3, heads=2)(x, edges).sum())
print("Set2Set", gnn.Set2Set(8, 2)(x, torch.zeros(60, dtype=torch.long)).sum(), "top", gnn.TopKPooling(8, 0.5)(x, edges)[0].sum())
print("degrees", utils.degree(edges[0])[:8], "softmax", utils.softmax(torch.arange(6.0), torch.tensor([0, 0, 1, 1, 2, 2])))
print("dense", utils.to_dense_adj(edges).sum(), utils.to_dense_batch(batch.x, batch.batch)[1].sum())
print("parts", utils.k_hop_subgraph(3, 1, edges)[0], utils.subgraph(torch.arange(20), edges)[0], utils.negative_sampling(edges).shape)
mixed = HeteroData()
mixed["user"].x = torch.randn(5, 4)
mixed["item"].x = torch.randn(3, 4)
mixed["user", "buys", "item"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 0]])
mixed["item", "sold", "user"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 4]])
convolutions = {("user", "buys", "item"): gnn.SAGEConv((4, 4), 6), ("item", "sold", "user"): gnn.GATConv((4, 4), 6, add_self_loops=False)}
print(mixed, gnn.HeteroConv(convolutions)(mixed.x_dict, mixed.edge_index_dict))
print(Compose([NormalizeFeatures(), RandomNodeSplit(num_val=10, num_test=10)])(graph.clone()).train_mask.nonzero().flatten())
