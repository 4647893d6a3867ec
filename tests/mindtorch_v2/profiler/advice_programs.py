"""Programs that a rule of advice is about, each beside the same program as the advice has it.

Each is a function that makes what the program needs, and returns one step of it. `benchmarks/advice.py` times them.
"""

import atexit
import collections
import copy
import io
import logging
import pathlib
import queue
import shutil
import tempfile
import threading
import time

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import record_function
from mindtorch_v2.profiler.advice.parts import OWN

LOADER = "enumerate(DataLoader)#_{}DataLoaderIter.__next__"  # torch's name of the scope around the next batch


def item_in_loop():
    x = torch.randn(200)
    return lambda: sum(x[i].item() for i in range(200))


def item_at_once():
    x = torch.randn(200)
    return lambda: sum(x.tolist())


def deciding_by_element():
    x = torch.randn(200)
    return lambda: [i for i in range(200) if x[i] > 0]


def deciding_at_once():
    x = torch.randn(200)
    return lambda: [i for i, positive in enumerate((x > 0).tolist()) if positive]


def masked_by_index():
    x = torch.randn(100_000)
    mask = x > 0
    return lambda: x[mask].sum()


def masked_by_product():
    x = torch.randn(100_000)
    mask = x > 0
    return lambda: (x * mask).sum()


def _training(*, to_none):
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(12)])
    x = torch.randn(8, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=to_none)

    return step


def gradients_set_to_zero():
    return _training(to_none=False)


def gradients_set_to_none():
    return _training(to_none=True)


def gradients_zeroed_by_hand():
    weights = [torch.randn(256, 256, requires_grad=True) for _ in range(10)]

    def step():
        sum((w * 2).sum() for w in weights).backward()
        for w in weights:
            w.grad.zero_()

    return step


def gradients_dropped_by_hand():
    weights = [torch.randn(256, 256, requires_grad=True) for _ in range(10)]

    def step():
        sum((w * 2).sum() for w in weights).backward()
        for w in weights:
            w.grad = None

    return step


def _mixing(weights, use):
    """A step whose weights are used as `use` makes them."""

    def step():
        for w in weights:
            w.grad = None
        sum((use(w) * 2).sum() for w in weights).backward()

    return step


def gradients_that_come_transposed():
    return _mixing([torch.randn(200, 300, requires_grad=True) for _ in range(6)], lambda w: w.permute(1, 0))


def gradients_that_come_as_they_are():
    return _mixing([torch.randn(300, 200, requires_grad=True) for _ in range(6)], lambda w: w)


def _steps_of_adam(**options):
    params = [torch.randn(16, 16, requires_grad=True) for _ in range(100)]
    for p in params:
        p.grad = torch.randn(16, 16)
    return torch.optim.Adam(params, **options).step


def adam_by_parameter():
    return _steps_of_adam()


def adam_by_lists():
    return _steps_of_adam(foreach=True)


def adam_fused():
    return _steps_of_adam(fused=True)


def _loading(kind, wait):
    def step():
        with record_function(LOADER.format(kind)):
            if wait:
                time.sleep(wait)
        torch.ones(3).sin()
        time.sleep(0.02)  # computing

    return step


def loading_in_process():
    return _loading("SingleProcess", 0.02)


def loading_beside():
    return _loading("MultiProcessing", 0)


def slow_workers():
    return _loading("MultiProcessing", 0.02)


def casting_again():
    weight, batches = torch.randn(256, 256), [torch.randn(4, 256, dtype=torch.float64) for _ in range(8)]
    return lambda: [x @ weight.double() for x in batches]


def casting_once():
    weight, batches = torch.randn(256, 256), [torch.randn(4, 256, dtype=torch.float64) for _ in range(8)]

    def step():
        double = weight.double()
        return [x @ double for x in batches]

    return step


def reordering_again():
    weight, batches = torch.randn(256, 256).t(), [torch.randn(256) for _ in range(8)]
    return lambda: [weight.contiguous() * x for x in batches]


def reordering_once():
    weight, batches = torch.randn(256, 256).t(), [torch.randn(256) for _ in range(8)]

    def step():
        ordered = weight.contiguous()
        return [ordered * x for x in batches]

    return step


def reshaping_again():
    weight = torch.randn(64, 8, 32).transpose(0, 1)
    return lambda: [weight.reshape(-1).sum() for _ in range(8)]


def reshaping_in_order():
    weight = torch.randn(64, 8, 32).transpose(0, 1).contiguous()
    return lambda: [weight.reshape(-1).sum() for _ in range(8)]


def _convolution(*, bias):
    net = nn.Sequential(nn.Conv2d(1, 32, 1, bias=bias), nn.BatchNorm2d(32))
    images = torch.randn(8, 1, 32, 32)
    return lambda: net(images).square().mean().backward()


def bias_before_norm():
    return _convolution(bias=True)


def no_bias_before_norm():
    return _convolution(bias=False)


def rows_one_by_one():
    x, w = torch.randn(100, 32), torch.randn(32, requires_grad=True)
    return lambda: torch.stack([(x[i] * w).sum() for i in range(100)]).sum().backward()


def rows_at_once():
    x, w = torch.randn(100, 32), torch.randn(32, requires_grad=True)
    return lambda: (x * w).sum(1).sum().backward()


def filling_by_row():
    x = torch.zeros(100, 32)

    def step():
        for i in range(100):
            x[i] = i

    return step


def filling_at_once():
    x = torch.zeros(100, 32)
    return lambda: x.copy_(torch.arange(100).unsqueeze(1))


def many_small_tensors():
    tensors = [torch.randn(16) for _ in range(100)]
    return lambda: [t.exp().mul(2).sum() for t in tensors]


def one_stacked_tensor():
    stacked = torch.randn(100, 16)
    return lambda: stacked.exp().mul(2).sum(1)


def _beside_a_product(also):
    """A step that multiplies matrices, and does something else before."""
    x = torch.randn(200, 200)

    def step():
        x.sum()
        also()
        return x @ x

    return step


def nothing_beside():
    return _beside_a_product(lambda: None)


def sleeping():
    def wait():
        time.sleep(0.002)

    return _beside_a_product(wait)


def copying_objects():
    weights = {str(i): torch.randn(100, 100) for i in range(30)}
    return _beside_a_product(lambda: copy.deepcopy(weights))


def reading_again():
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - for as long as the program
    file.write(b"x\n" * 2_000_000)
    file.flush()

    def read():
        with open(file.name) as source:
            source.read()

    return _beside_a_product(read)


def listing_again():
    numbers = [float(i) for i in range(20_000)]
    return _beside_a_product(lambda: torch.tensor(numbers))


def printing_tensors():
    shown, sink = torch.randn(20, 20), io.StringIO()

    def show():
        sink.seek(0)
        print(shown, file=sink)

    return _beside_a_product(show)


def converting_each():
    rows = [torch.randn(8) for _ in range(300)]

    def convert():
        for row in rows:
            torch.from_numpy(row.numpy())

    return _beside_a_product(convert)


def counting():
    def count():
        total = 0
        for i in range(10_000):
            total += i % 7

    return _beside_a_product(count)


def growing_by_concatenation():
    pieces = [torch.randn(2000) for _ in range(100)]

    def step():
        whole = torch.zeros(0)
        for piece in pieces:
            whole = torch.cat([whole, piece])
        return whole

    return step


def concatenating_once():
    pieces = [torch.randn(2000) for _ in range(100)]
    return lambda: torch.cat(pieces)


def _learning_from_the_last_losses(keep):
    w, x = torch.randn(100, 100, requires_grad=True), torch.randn(100, 100)
    losses = collections.deque(maxlen=5)

    def step():
        w.grad = None
        losses.append((x @ w).square().mean())
        sum(losses).backward(retain_graph=True)
        losses[-1] = keep(losses[-1])

    return step


def keeping_graphs():
    return _learning_from_the_last_losses(lambda loss: loss)


def keeping_numbers():
    return _learning_from_the_last_losses(lambda loss: loss.detach())


# --- second programs, of other shapes and sizes: what a rule claims must hold for these as well -----------------------------


def matrix_by_element():
    table = torch.randn(24, 24)

    def step():
        best = {}
        for i in range(24):
            for j in range(24):
                best[i] = max(best.get(i, 0.0), float(table[i, j]))
        return best

    return step


def matrix_as_lists():
    table = torch.randn(24, 24)

    def step():
        best = {}
        for i, row in enumerate(table.tolist()):
            for value in row:
                best[i] = max(best.get(i, 0.0), value)
        return best

    return step


def _judging(pick):
    """A loss of the entries that count."""
    guess, wanted = torch.randn(300, 200, requires_grad=True), torch.randn(300, 200)
    counts = torch.rand(300, 200) < 0.7

    def step():
        guess.grad = None
        pick(guess - wanted, counts).square().sum().backward()

    return step


def judging_by_index():
    return _judging(lambda difference, counts: difference[counts])


def judging_by_mask():
    return _judging(lambda difference, counts: difference * counts)


def _blending(weights, use):
    x = torch.randn(40, 30, 20)

    def step():
        for weight in weights:
            weight.grad = None
            (use(weight) * x).mean().backward()

    return step


def blending_transposed():
    return _blending([torch.randn(20, 30, 40, requires_grad=True) for _ in range(4)], lambda w: w.transpose(0, 2))


def blending_in_order():
    return _blending([torch.randn(40, 30, 20, requires_grad=True) for _ in range(4)], lambda w: w)


def _classifying(**options):
    net = nn.Sequential(nn.Linear(40, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, **options)
    x, y = torch.randn(32, 40), torch.randint(0, 10, (32,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def classifying_with_adamw():
    return _classifying()


def classifying_with_fused_adamw():
    return _classifying(fused=True)


def _batch(seconds):
    time.sleep(seconds)  # as long as a disk or a network takes
    return torch.ones(64, 64)


def batches_made_between():
    weight = torch.randn(400, 400)

    def step():
        with record_function(LOADER.format("SingleProcess")):
            batch = _batch(0.006)
        return batch.sum() + (weight @ weight).sum()

    return step


def batches_made_beside():
    weight, wanted, made = torch.randn(400, 400), queue.SimpleQueue(), queue.SimpleQueue()

    def work():
        while wanted.get():
            made.put(_batch(0.006))

    threading.Thread(target=work, daemon=True).start()
    wanted.put(True)

    def step():
        with record_function(LOADER.format("MultiProcessing")):
            batch = made.get()
        wanted.put(True)
        return batch.sum() + (weight @ weight).sum()

    return step


def batches_late():
    weight = torch.randn(500, 500)

    def step():
        with record_function(LOADER.format("MultiProcessing")):
            batch = _batch(0.003)
        return batch.sum() + (weight @ weight).sum()

    return step


def batches_there():
    weight, batch = torch.randn(500, 500), torch.ones(64, 64)

    def step():
        with record_function(LOADER.format("MultiProcessing")):
            pass
        return batch.sum() + (weight @ weight).sum()

    return step


def comparing_to_labels():
    guesses, labels = [torch.randn(5000) for _ in range(20)], torch.randint(0, 2, (5000,))
    return lambda: [(guess * labels.float()).sum() for guess in guesses]


def comparing_to_numbers():
    guesses, labels = [torch.randn(5000) for _ in range(20)], torch.randint(0, 2, (5000,))

    def step():
        numbers = labels.float()
        return [(guess * numbers).sum() for guess in guesses]

    return step


def _deep(*, bias):
    layers = []
    for _ in range(2):
        layers += [nn.Conv2d(6, 6, 3, padding=1, bias=bias), nn.BatchNorm2d(6), nn.ReLU()]
    net, images = nn.Sequential(*layers), torch.randn(4, 6, 20, 20)
    return lambda: net(images).mean().backward()


def deep_with_bias():
    return _deep(bias=True)


def deep_without_bias():
    return _deep(bias=False)


def remembering_by_concatenation():
    weight, first = torch.randn(32, 32) / 6, torch.randn(1, 128, 32)

    def step():
        state, states = first, first
        for _ in range(30):
            state = torch.tanh(state @ weight)
            states = torch.cat((states, state), dim=0)
        return states.mean(0)

    return step


def remembering_in_a_list():
    weight, first = torch.randn(32, 32) / 6, torch.randn(1, 128, 32)

    def step():
        states = [first]
        for _ in range(30):
            states.append(torch.tanh(states[-1] @ weight))
        return torch.cat(states).mean(0)

    return step


def _carrying(hand_on):
    """A recurrent network that begins anew after every four steps."""
    weight, x = (torch.randn(80, 80) / 9).requires_grad_(), torch.randn(40, 80)
    kept = {"state": torch.zeros(40, 80), "turn": 0}

    def step():
        if kept["turn"] % 4 == 0:
            kept["state"] = torch.zeros(40, 80)
        kept["turn"] += 1
        weight.grad = None
        state = torch.tanh(kept["state"] @ weight + x)
        state.square().mean().backward(retain_graph=True)
        kept["state"] = hand_on(state)

    return step


def carrying_the_graph():
    return _carrying(lambda state: state)


def carrying_the_state():
    return _carrying(lambda state: state.detach())


def _fitting(beside):
    """A step of training, with something between forward and backward."""
    net, x, y = nn.Sequential(nn.Linear(30, 50), nn.Tanh(), nn.Linear(50, 1)), torch.randn(80, 30), torch.randn(80, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step():
        loss = (net(x) - y).square().mean()
        beside(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def fitting():
    return _fitting(lambda loss: None)


def polling():
    def poll(loss):
        for _ in range(3):
            time.sleep(0.0004)

    return _fitting(poll)


def copying_a_configuration():
    options = {f"layer {i}": {"sizes": [i, i + 1], "names": [str(i)] * 4, "rate": i / 7} for i in range(6)}
    return _fitting(lambda loss: copy.deepcopy(options))


def reading_shards():
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for i in range(4):
        np.save(folder / f"{i}.npy", np.zeros((100, 100)))
        (folder / f"{i}.txt").write_bytes(b"1" * 50_000)

    def read(loss):
        for i in range(4):
            np.load(folder / f"{i}.npy")
            (folder / f"{i}.txt").read_bytes()

    return _fitting(read)


def listing_rows():
    rows = [[j * 0.5 for j in range(16)] for _ in range(120)]

    def make(loss):
        return torch.tensor(rows), torch.as_tensor([row[0] for row in rows])

    return _fitting(make)


def logging_often():
    log = logging.Logger("advice")
    log.addHandler(logging.StreamHandler(io.StringIO()))

    def tell(loss):
        for i in range(6):
            log.warning("batch %d: loss %.4f", i, 0.5 * i)

    return _fitting(tell)


def averaging_in_numpy():
    parts = [torch.randn(60, 60) for _ in range(150)]

    def average(loss):
        return torch.from_numpy(np.array([part.numpy() for part in parts]))

    return _fitting(average)


def _words(count):
    return [f"word{i % 97}" for i in range(count)]


def counting_words():
    words = _words(2000)

    def count(loss):
        seen = {}
        for word in words:
            seen[word] = seen.get(word, 0) + 1
        return seen

    return _fitting(count)


def _pairs():
    return [(torch.randn(8), torch.randn(8, requires_grad=True)) for _ in range(40)]


def dot_by_dot():
    pairs = _pairs()

    def step():
        loss = 0.0
        for a, b in pairs:
            loss = loss + (a - b).abs().max()
        loss.backward()

    return step


def dots_at_once():
    a, b = torch.randn(40, 8), torch.randn(40, 8, requires_grad=True)
    return lambda: (a - b).abs().amax(1).sum().backward()


# rule → (a program that it is about, the same as advised)
PROGRAMS = {
    "item() in a loop": [
        (item_in_loop, item_at_once),
        (deciding_by_element, deciding_at_once),
        (matrix_by_element, matrix_as_lists),
    ],
    "result sized by values": [(masked_by_index, masked_by_product), (judging_by_index, judging_by_mask)],
    "zero_grad without set_to_none": [
        (gradients_set_to_zero, gradients_set_to_none),
        (gradients_zeroed_by_hand, gradients_dropped_by_hand),
    ],
    "gradients copied": [
        (gradients_that_come_transposed, gradients_that_come_as_they_are),
        (blending_transposed, blending_in_order),
    ],
    "optimizer step not fused": [
        (adam_by_parameter, adam_fused),
        (adam_by_lists, adam_fused),
        (classifying_with_adamw, classifying_with_fused_adamw),
    ],
    "DataLoader without workers": [(loading_in_process, loading_beside), (batches_made_between, batches_made_beside)],
    "DataLoader too slow": [(slow_workers, loading_beside), (batches_late, batches_there)],
    "repeated casts": [(casting_again, casting_once), (comparing_to_labels, comparing_to_numbers)],
    "repeated copies of non-contiguous tensors": [(reordering_again, reordering_once), (reshaping_again, reshaping_in_order)],
    "bias before batch norm": [(bias_before_norm, no_bias_before_norm), (deep_with_bias, deep_without_bias)],
    "concatenation in a loop": [
        (growing_by_concatenation, concatenating_once),
        (remembering_by_concatenation, remembering_in_a_list),
    ],
    "graph kept alive": [(keeping_graphs, keeping_numbers), (carrying_the_graph, carrying_the_state)],
    "sleeping": [(sleeping, nothing_beside), (polling, fitting)],
    "deepcopy": [(copying_objects, nothing_beside), (copying_a_configuration, fitting)],
    "reading files": [(reading_again, nothing_beside), (reading_shards, fitting)],
    "tensors made of Python lists": [(listing_again, nothing_beside), (listing_rows, fitting)],
    "printing": [(printing_tensors, nothing_beside), (logging_often, fitting)],
    "conversion to and from NumPy": [(converting_each, nothing_beside), (averaging_in_numpy, fitting)],
    "indexing in a loop": [(rows_one_by_one, rows_at_once), (filling_by_row, filling_at_once)],
    "tiny operators": [(many_small_tensors, one_stacked_tensor), (dot_by_dot, dots_at_once)],
}


# Programs whose time no rule explains: part → (the program, the same without)
UNEXPLAINED = {OWN: [(counting, nothing_beside), (counting_words, fitting)]}


def recorded(step, count=4, **options):
    """A profile of so many steps, after one that warms up."""
    step()
    with torch.profiler.profile(record_shapes=True, **options) as prof:
        for i in range(count):
            step()
            if i < count - 1:
                prof.step()
    return prof
