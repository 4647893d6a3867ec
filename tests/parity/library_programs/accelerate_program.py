"""accelerate: the training loop that its documentation begins with."""

import torch
from accelerate import Accelerator
from report import show

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
data = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randint(2, (32,)))
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, 8), schedule)
losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
show(losses=losses, weight=accelerator.unwrap_model(model).weight, rate=schedule.get_last_lr())
