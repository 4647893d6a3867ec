"""torchvision and timm: transforms, and models of several families from their names; forward, backward and one step."""

import timm
import torch
import torchvision
from report import show
from torchvision import transforms

torch.manual_seed(0)
changed = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomCrop(6), transforms.Normalize([0.5] * 3, [0.5] * 3)]
)(torch.rand(3, 8, 8))
show(changed=changed)
x, target = torch.randn(2, 3, 32, 32), torch.tensor([0, 3])
models = {
    "resnet18": lambda: torchvision.models.resnet18(num_classes=4),
    "vit_b": lambda: torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=4),
    "mobilenet_v3": lambda: torchvision.models.mobilenet_v3_small(num_classes=4),
    "resnet10t": lambda: timm.create_model("resnet10t", num_classes=4),
    "deit": lambda: timm.create_model("vit_tiny_patch16_224", num_classes=4, img_size=32, patch_size=8, depth=2),
    "convnext": lambda: timm.create_model("convnext_atto", num_classes=4, depths=(1, 1, 1, 1)),
}
for name, make in models.items():
    model = make().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.nn.functional.cross_entropy(model(x), target)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        show(**{name: [loss.item(), model(x).abs().sum().item()]})
