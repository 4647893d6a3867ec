"""Programs that a rule of advice is about, each beside the same program as the advice has it.

Each is a function that makes what the program needs, and returns one step of it; `size` is how large the defect is. `benchmarks/advice.py` times them.
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


def item_in_loop(size=1):
    x = torch.randn(200 * size)
    return lambda: sum(x[i].item() for i in range(200 * size))


def item_at_once(size=1):
    x = torch.randn(200 * size)
    return lambda: sum(x.tolist())


def deciding_by_element(size=1):
    x = torch.randn(200 * size)
    return lambda: [i for i in range(200 * size) if x[i] > 0]


def deciding_at_once(size=1):
    x = torch.randn(200 * size)
    return lambda: [i for i, positive in enumerate((x > 0).tolist()) if positive]


def masked_by_index(size=1):
    x = torch.randn(100_000 * size)
    mask = x > 0
    return lambda: x[mask].sum()


def masked_by_product(size=1):
    x = torch.randn(100_000 * size)
    mask = x > 0
    return lambda: (x * mask).sum()


def _training(size, *, to_none):
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(12 * size)])
    x = torch.randn(8, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=to_none)

    return step


def gradients_set_to_zero(size=1):
    return _training(size, to_none=False)


def gradients_set_to_none(size=1):
    return _training(size, to_none=True)


def gradients_zeroed_by_hand(size=1):
    weights = [torch.randn(256, 256, requires_grad=True) for _ in range(10 * size)]

    def step():
        sum((w * 2).sum() for w in weights).backward()
        for w in weights:
            w.grad.zero_()

    return step


def gradients_dropped_by_hand(size=1):
    weights = [torch.randn(256, 256, requires_grad=True) for _ in range(10 * size)]

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


def gradients_that_come_transposed(size=1):
    return _mixing([torch.randn(200, 300, requires_grad=True) for _ in range(6 * size)], lambda w: w.permute(1, 0))


def gradients_that_come_as_they_are(size=1):
    return _mixing([torch.randn(300, 200, requires_grad=True) for _ in range(6 * size)], lambda w: w)


def _steps_of_adam(size, **options):
    params = [torch.randn(16, 16, requires_grad=True) for _ in range(100 * size)]
    for p in params:
        p.grad = torch.randn(16, 16)
    return torch.optim.Adam(params, **options).step


def adam_by_parameter(size=1):
    return _steps_of_adam(size)


def adam_by_lists(size=1):
    return _steps_of_adam(size, foreach=True)


def adam_fused(size=1):
    return _steps_of_adam(size, fused=True)


def _loading(size, kind, wait):
    def step():
        with record_function(LOADER.format(kind)):
            if wait:
                time.sleep(size * wait)
        torch.ones(3).sin()
        time.sleep(size * 0.02)  # computing

    return step


def loading_in_process(size=1):
    return _loading(size, "SingleProcess", 0.02)


def loading_beside(size=1):
    return _loading(size, "MultiProcessing", 0)


def slow_workers(size=1):
    return _loading(size, "MultiProcessing", 0.02)


def casting_again(size=1):
    weight, batches = torch.randn(256, 256), [torch.randn(4, 256, dtype=torch.float64) for _ in range(8 * size)]
    return lambda: [x @ weight.double() for x in batches]


def casting_once(size=1):
    weight, batches = torch.randn(256, 256), [torch.randn(4, 256, dtype=torch.float64) for _ in range(8 * size)]

    def step():
        double = weight.double()
        return [x @ double for x in batches]

    return step


def reordering_again(size=1):
    weight, batches = torch.randn(256, 256).t(), [torch.randn(256) for _ in range(8 * size)]
    return lambda: [weight.contiguous() * x for x in batches]


def reordering_once(size=1):
    weight, batches = torch.randn(256, 256).t(), [torch.randn(256) for _ in range(8 * size)]

    def step():
        ordered = weight.contiguous()
        return [ordered * x for x in batches]

    return step


def reshaping_again(size=1):
    weight = torch.randn(64, 8, 32 * size).transpose(0, 1)
    return lambda: [weight.reshape(-1).sum() for _ in range(8)]


def reshaping_in_order(size=1):
    weight = torch.randn(64, 8, 32 * size).transpose(0, 1).contiguous()
    return lambda: [weight.reshape(-1).sum() for _ in range(8)]


def _convolution(size, *, bias):
    net = nn.Sequential(nn.Conv2d(1, 32, 1, bias=bias), nn.BatchNorm2d(32))
    images = torch.randn(8 * size, 1, 32, 32)
    return lambda: net(images).square().mean().backward()


def bias_before_norm(size=1):
    return _convolution(size, bias=True)


def no_bias_before_norm(size=1):
    return _convolution(size, bias=False)


def rows_one_by_one(size=1):
    x, w = torch.randn(100 * size, 32), torch.randn(32, requires_grad=True)
    return lambda: torch.stack([(x[i] * w).sum() for i in range(100 * size)]).sum().backward()


def rows_at_once(size=1):
    x, w = torch.randn(100 * size, 32), torch.randn(32, requires_grad=True)
    return lambda: (x * w).sum(1).sum().backward()


def filling_by_row(size=1):
    x = torch.zeros(100 * size, 32)

    def step():
        for i in range(100 * size):
            x[i] = i

    return step


def filling_at_once(size=1):
    x = torch.zeros(100 * size, 32)
    return lambda: x.copy_(torch.arange(100 * size).unsqueeze(1))


def many_small_tensors(size=1):
    tensors = [torch.randn(16) for _ in range(100 * size)]
    return lambda: [t.exp().mul(2).sum() for t in tensors]


def one_stacked_tensor(size=1):
    stacked = torch.randn(100 * size, 16)
    return lambda: stacked.exp().mul(2).sum(1)


def _beside_a_product(also):
    """A step that multiplies matrices, and does something else before."""
    x = torch.randn(200, 200)

    def step():
        x.sum()
        also()
        return x @ x

    return step


def nothing_beside(size=1):
    return _beside_a_product(lambda: None)


def sleeping(size=1):
    def wait():
        time.sleep(0.002 * size)

    return _beside_a_product(wait)


def copying_objects(size=1):
    weights = {str(i): torch.randn(100, 100) for i in range(30 * size)}
    return _beside_a_product(lambda: copy.deepcopy(weights))


def reading_again(size=1):
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - for as long as the program
    file.write(b"x\n" * 2_000_000 * size)
    file.flush()

    def read():
        with open(file.name) as source:
            source.read()

    return _beside_a_product(read)


def listing_again(size=1):
    numbers = [float(i) for i in range(20_000 * size)]
    return _beside_a_product(lambda: torch.tensor(numbers))


def printing_tensors(size=1):
    shown, sink = torch.randn(20 * size, 20), io.StringIO()

    def show():
        sink.seek(0)
        print(shown, file=sink)

    return _beside_a_product(show)


def converting_each(size=1):
    rows = [torch.randn(8) for _ in range(300 * size)]

    def convert():
        for row in rows:
            torch.from_numpy(row.numpy())

    return _beside_a_product(convert)


def counting(size=1):
    def count():
        total = 0
        for i in range(10_000 * size):
            total += i % 7

    return _beside_a_product(count)


def growing_by_concatenation(size=1):
    pieces = [torch.randn(2000) for _ in range(100 * size)]

    def step():
        whole = torch.zeros(0)
        for piece in pieces:
            whole = torch.cat([whole, piece])
        return whole

    return step


def concatenating_once(size=1):
    pieces = [torch.randn(2000) for _ in range(100 * size)]
    return lambda: torch.cat(pieces)


def _learning_from_the_last_losses(size, keep):
    w, x = torch.randn(100, 100, requires_grad=True), torch.randn(100, 100)
    losses = collections.deque(maxlen=5 * size)

    def step():
        w.grad = None
        losses.append((x @ w).square().mean())
        sum(losses).backward(retain_graph=True)
        losses[-1] = keep(losses[-1])

    return step


def keeping_graphs(size=1):
    return _learning_from_the_last_losses(size, lambda loss: loss)


def keeping_numbers(size=1):
    return _learning_from_the_last_losses(size, lambda loss: loss.detach())


# --- second programs, of other shapes and sizes: what a rule claims must hold for these as well -----------------------------


def matrix_by_element(size=1):
    table = torch.randn(24 * size, 24)

    def step():
        best = {}
        for i in range(24 * size):
            for j in range(24):
                best[i] = max(best.get(i, 0.0), float(table[i, j]))
        return best

    return step


def matrix_as_lists(size=1):
    table = torch.randn(24 * size, 24)

    def step():
        best = {}
        for i, row in enumerate(table.tolist()):
            for value in row:
                best[i] = max(best.get(i, 0.0), value)
        return best

    return step


def _judging(size, pick):
    """A loss of the entries that count."""
    guess, wanted = torch.randn(300 * size, 200, requires_grad=True), torch.randn(300 * size, 200)
    counts = torch.rand(300 * size, 200) < 0.7

    def step():
        guess.grad = None
        pick(guess - wanted, counts).square().sum().backward()

    return step


def judging_by_index(size=1):
    return _judging(size, lambda difference, counts: difference[counts])


def judging_by_mask(size=1):
    return _judging(size, lambda difference, counts: difference * counts)


def _blending(weights, use):
    x = torch.randn(40, 30, 20)

    def step():
        for weight in weights:
            weight.grad = None
            (use(weight) * x).mean().backward()

    return step


def blending_transposed(size=1):
    return _blending([torch.randn(20, 30, 40, requires_grad=True) for _ in range(4 * size)], lambda w: w.transpose(0, 2))


def blending_in_order(size=1):
    return _blending([torch.randn(40, 30, 20, requires_grad=True) for _ in range(4 * size)], lambda w: w)


def _classifying(size, **options):
    hidden = [layer for _ in range(12 * size) for layer in (nn.Linear(24, 24), nn.ReLU())]
    net = nn.Sequential(nn.Linear(40, 24), nn.ReLU(), *hidden, nn.Linear(24, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, **options)
    x, y = torch.randn(32, 40), torch.randint(0, 10, (32,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def classifying_with_adamw(size=1):
    return _classifying(size)


def classifying_with_fused_adamw(size=1):
    return _classifying(size, fused=True)


def _batch(seconds):
    time.sleep(seconds)  # as long as a disk or a network takes
    return torch.ones(64, 64)


def _awaiting(size):
    time.sleep(0.004 * size)  # as long as another device takes to compute


def batches_made_between(size=1):
    def step():
        with record_function(LOADER.format("SingleProcess")):
            batch = _batch(0.006 * size)
        batch.sum()
        _awaiting(size)

    return step


def batches_made_beside(size=1):
    wanted, made = queue.SimpleQueue(), queue.SimpleQueue()

    def work():
        while wanted.get():
            made.put(_batch(0.006 * size))

    threading.Thread(target=work, daemon=True).start()
    wanted.put(True)

    def step():
        with record_function(LOADER.format("MultiProcessing")):
            batch = made.get()
        wanted.put(True)
        batch.sum()
        _awaiting(size)

    return step


def batches_late(size=1):
    weight = torch.randn(500, 500)

    def step():
        with record_function(LOADER.format("MultiProcessing")):
            batch = _batch(0.003 * size)
        return batch.sum() + (weight.t() @ weight).sum()

    return step


def batches_there(size=1):
    weight, batch = torch.randn(500, 500), torch.ones(64, 64)

    def step():
        with record_function(LOADER.format("MultiProcessing")):
            pass
        return batch.sum() + (weight.t() @ weight).sum()

    return step


def comparing_to_labels(size=1):
    guesses, labels = [torch.randn(5000) for _ in range(20 * size)], torch.randint(0, 2, (5000,))
    return lambda: [(guess * labels.float()).sum() for guess in guesses]


def comparing_to_numbers(size=1):
    guesses, labels = [torch.randn(5000) for _ in range(20 * size)], torch.randint(0, 2, (5000,))

    def step():
        numbers = labels.float()
        return [(guess * numbers).sum() for guess in guesses]

    return step


def _deep(size, *, bias):
    layers = []
    for _ in range(2 * size):
        layers += [nn.Conv2d(6, 6, 3, padding=1, bias=bias), nn.BatchNorm2d(6), nn.ReLU()]
    net, images = nn.Sequential(*layers), torch.randn(4, 6, 20, 20)
    return lambda: net(images).mean().backward()


def deep_with_bias(size=1):
    return _deep(size, bias=True)


def deep_without_bias(size=1):
    return _deep(size, bias=False)


def remembering_by_concatenation(size=1):
    weight, first = torch.randn(32, 32) / 6, torch.randn(1, 128, 32)

    def step():
        state, states = first, first
        for _ in range(30 * size):
            state = torch.tanh(state @ weight)
            states = torch.cat((states, state), dim=0)
        return states.mean(0)

    return step


def remembering_in_a_list(size=1):
    weight, first = torch.randn(32, 32) / 6, torch.randn(1, 128, 32)

    def step():
        states = [first]
        for _ in range(30 * size):
            states.append(torch.tanh(states[-1] @ weight))
        return torch.cat(states).mean(0)

    return step


def _carrying(size, hand_on):
    """A recurrent network that begins anew after every few steps."""
    weight, x = (torch.randn(80, 80) / 9).requires_grad_(), torch.randn(40, 80)
    kept = {"state": torch.zeros(40, 80), "turn": 0}

    def step():
        if kept["turn"] % (4 * size) == 0:
            kept["state"] = torch.zeros(40, 80)
        kept["turn"] += 1
        weight.grad = None
        state = torch.tanh(kept["state"] @ weight + x)
        state.square().mean().backward(retain_graph=True)
        kept["state"] = hand_on(state)

    return step


def carrying_the_graph(size=1):
    return _carrying(size, lambda state: state)


def carrying_the_state(size=1):
    return _carrying(size, lambda state: state.detach())


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


def fitting(size=1):
    return _fitting(lambda loss: None)


def polling(size=1):
    def poll(loss):
        for _ in range(3 * size):
            time.sleep(0.0004)

    return _fitting(poll)


def copying_a_configuration(size=1):
    options = {f"layer {i}": {"sizes": [i, i + 1], "names": [str(i)] * 4, "rate": i / 7} for i in range(6 * size)}
    return _fitting(lambda loss: copy.deepcopy(options))


def reading_shards(size=1):
    folder = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for i in range(4 * size):
        np.save(folder / f"{i}.npy", np.zeros((100, 100)))
        (folder / f"{i}.txt").write_bytes(b"1" * 50_000)

    def read(loss):
        for i in range(4 * size):
            np.load(folder / f"{i}.npy")
            (folder / f"{i}.txt").read_bytes()

    return _fitting(read)


def listing_rows(size=1):
    rows = [[j * 0.5 for j in range(16)] for _ in range(120 * size)]

    def make(loss):
        return torch.tensor(rows), torch.as_tensor([row[0] for row in rows])

    return _fitting(make)


def logging_often(size=1):
    log = logging.Logger("advice")
    log.addHandler(logging.StreamHandler(io.StringIO()))

    def tell(loss):
        for i in range(6 * size):
            log.warning("batch %d: loss %.4f", i, 0.5 * i)

    return _fitting(tell)


def averaging_in_numpy(size=1):
    parts = [torch.randn(60, 60) for _ in range(150 * size)]

    def average(loss):
        return torch.from_numpy(np.array([part.numpy() for part in parts]))

    return _fitting(average)


def _words(count):
    return [f"word{i % 97}" for i in range(count)]


def counting_words(size=1):
    words = _words(2000 * size)

    def count(loss):
        seen = {}
        for word in words:
            seen[word] = seen.get(word, 0) + 1
        return seen

    return _fitting(count)


def _pairs(size):
    return [(torch.randn(8), torch.randn(8, requires_grad=True)) for _ in range(40 * size)]


def dot_by_dot(size=1):
    pairs = _pairs(size)

    def step():
        loss = 0.0
        for a, b in pairs:
            loss = loss + (a - b).abs().max()
        loss.backward()

    return step


def dots_at_once(size=1):
    a, b = torch.randn(40 * size, 8), torch.randn(40 * size, 8, requires_grad=True)
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
