"""Which storage was at an address, against a reader that goes through all that happened one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_v2.profiler.model.session import GRADIENT, PARAMETER
from mindtorch_v2.profiler.model.storage_lives import lives_of

from .by_hand import op
from .test_data_flow import recorded

ROWS = 4
addresses = st.integers(1, 3)
times = st.integers(1, 60)


@st.composite
def happenings(draw):
    """What a recording may tell: changes that match or do not, operands, roles, and what is held when a recording begins."""
    changes = sorted(
        draw(st.lists(st.tuples(times, addresses, st.sampled_from([8, 16, -8, -16]), st.integers(-1, ROWS - 1)), max_size=12))
    )
    began = sorted({0, *draw(st.lists(times, max_size=3))})
    held = [
        (at, address, draw(st.sampled_from([8, 16]))) for at in began for address in sorted(draw(st.sets(addresses, max_size=3)))
    ]
    operands = sorted(draw(st.lists(st.tuples(st.integers(0, ROWS - 1), addresses), max_size=6)))
    roles = sorted(draw(st.lists(st.tuples(times, addresses, st.sampled_from([PARAMETER, GRADIENT])), max_size=4)))
    return {"changes": changes, "began": tuple(began), "held": held, "operands": operands, "roles": roles}


def one_by_one(starts, *, changes, began, held, operands, roles):
    """Storages (address, bytes, made, by, freed, by, roles), and those of operands, in the order in which things happen at one time."""
    queue = [(at, 0, "begin", i) for i, at in enumerate(began)]
    queue += [(at, 1 if size > 0 else 4, "change", i) for i, (at, _, size, _) in enumerate(changes)]
    queue += [(starts[row], 2, "operand", i) for i, (row, _) in enumerate(operands)]
    queue += [(at, 3, "role", i) for i, (at, _, _) in enumerate(roles)]
    live, storages, found = {}, [], [-1] * len(operands)

    def free(address, now, row):
        storages[live.pop(address)][4:6] = [now, row]

    def make(address, size, now, row):
        live[address] = len(storages)
        storages.append([address, size, now, row, None, -1, 0])

    for now, _, what, i in sorted(queue, key=lambda entry: entry[:2]):
        if what == "begin":
            here = {address: size for at, address, size in held if at == now}
            for address in [a for a in live if here.get(a) != storages[live[a]][1]]:
                free(address, now, -1)
            for address, size in here.items():
                if address not in live:
                    make(address, size, None if i == 0 else now, -1)
        elif what == "change":
            _, address, size, row = changes[i]
            if address in live:
                free(address, now, row)
            if size > 0:
                make(address, size, now, row)
        elif what == "operand":
            found[i] = live.get(operands[i][1], -1)
        elif (number := live.get(roles[i][1])) is not None:
            storages[number][6] |= 1 << roles[i][2]
    return [tuple(storage) for storage in storages], found


@settings(max_examples=300, derandomize=True, deadline=None)
@given(happenings())
def test_storages_are_those_that_a_reader_finds_one_by_one(told):
    starts = [10 * i + 5 for i in range(ROWS)]
    session = recorded([op("aten::neg", at, at + 4) for at in starts], **told)
    storages, operand, made, freed = lives_of(session)
    found = [
        (s.address, s.size_bytes, s.made_ns, s.made_by, s.freed_ns, s.freed_by, roles)
        for s, roles in zip(storages, storages.roles.tolist(), strict=True)
    ]
    assert (found, operand.tolist()) == one_by_one(starts, **told)
    for i, (at, address, size, _) in enumerate(told["changes"]):
        assert (made[i] >= 0) == (size > 0)
        for number in (n for n in (made[i], freed[i]) if n >= 0):
            assert storages[number].address == address
            assert at in (storages[number].made_ns, storages[number].freed_ns)
