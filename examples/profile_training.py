"""Training under the profiler: named scopes, a schedule that picks steps, a trace of each cycle for TensorBoard, and tables."""

import argparse

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function, schedule, tensorboard_trace_handler


def batch(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy waves of four frequencies, and the frequency of each."""
    frequency = torch.randint(0, 4, (count,))
    time = torch.linspace(0, 6.2832, 64)
    phase = 6.2832 * torch.rand(count, 1)
    waves = torch.sin((frequency.unsqueeze(1) + 1) * time + phase) + 0.5 * torch.randn(count, 64)
    return waves.unsqueeze(1), frequency


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--traces", default="traces", help="directory for the traces")
    parser.add_argument("--rows", type=int, default=8, help="of each table; -1 for all")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=2), nn.ReLU(), nn.Conv1d(16, 32, 9, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(320, 4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    write_trace = tensorboard_trace_handler(options.traces)

    def report(prof: profile) -> None:
        write_trace(prof)
        print(f"up to step {prof.step_num}:")
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=options.rows))

    # of every ten steps six pass unrecorded, one warms up, three are recorded; twice
    steps = schedule(wait=6, warmup=1, active=3, repeat=2)
    with profile(schedule=steps, on_trace_ready=report, record_shapes=True) as prof:
        for step in range(options.steps):
            with record_function("draw a batch"):
                waves, frequency = batch(64)
            with record_function("forward"):
                loss = criterion(model(waves), frequency)
            with record_function("backward"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 5 == 0 or step == options.steps - 1:
                print(f"step {step:3d}  loss {loss.item():.6f}")
            prof.step()
    print(f"traces are in {options.traces}: tensorboard --logdir {options.traces}, or open one at https://ui.perfetto.dev")


if __name__ == "__main__":
    main()
