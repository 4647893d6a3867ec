"""SQL over recordings: the tables have what the session has, and every question with a name has an answer."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, schedule
from mindtorch_v2.profiler.model.session import Info, Track
from mindtorch_v2.profiler.query import NAMED, Database, query
from mindtorch_v2.profiler.query.schema import SCHEMA
from mindtorch_v2.profiler.results import Results

from ..by_hand import kernel, op, record, runtime, scope


@pytest.fixture(scope="module")
def session():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True, "with_flops": True}
    with profile(schedule=schedule(wait=0, warmup=1, active=3, repeat=1), **options) as prof:
        for _ in range(4):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            prof.step()
    return prof.session


@pytest.fixture(scope="module")
def database(session):
    with Database([session]) as database:
        yield database


def test_events_are_those_of_the_session(database, session):
    (row,) = database.ask("select count(*), min(start_ns), max(end_ns), count(distinct name) from events").rows
    assert row == (len(session), session.start_ns.min(), session.end_ns.max(), len({session.labels[i].name for i in session.label}))


def test_operators_are_those_of_key_averages(database, session):
    averages = {row.key: row for row in Results(session).key_averages() if row.key.startswith("aten::")}
    found = {row["name"]: row for row in database.ask("select * from operators where name like 'aten::%'").as_dicts()}
    assert set(found) == set(averages)
    for name, row in found.items():
        assert row["calls"] == averages[name].count
        assert row["self_ns"] == round(averages[name].self_cpu_time_total * 1000)
        assert row["flops"] == averages[name].flops
        assert row["min_ns"] <= row["median_ns"] <= row["max_ns"]


def test_the_share_of_an_operator_is_that_of_the_table(database, session):
    whole = Results(session).key_averages().self_cpu_time_total
    for row in database.ask("top").as_dicts():
        assert row["percent"] == pytest.approx(100 * row["self_ns"] / 1000 / whole, abs=0.051)


def test_steps_modules_memory_and_stacks(database, session):
    assert [row[0] for row in database.ask("select number from steps order by number").rows] == [1, 2, 3]
    times = {row.module: row for row in Results(session).by_module()}
    for row in database.ask("select * from modules").as_dicts():
        assert row["forward_ns"] == round(times[row["module"]].forward_us * 1000)
        assert row["calls"] == times[row["module"]].calls
    assert database.ask("select count(*), sum(size_bytes) from memory").rows == (
        (len(session.memory.time_ns), session.memory.size_bytes.sum()),
    )
    (row,) = database.ask("select count(distinct function) from stacks").rows
    assert row[0] == len({session.frames[f].function for stack in session.stack_table for f in stack})


def test_parents_and_backward(database):
    rows = database.ask(
        "select e.name, p.name from events e join events p on e.parent = p.row where e.name = 'aten::addmm' and p.kind = 'op'"
    ).rows
    assert set(rows) == {("aten::addmm", "aten::linear")}
    assert database.ask("select count(*) from events where name = 'aten::mm' and not backward").rows == ((0,),)


@pytest.mark.parametrize("name", NAMED)
def test_every_question_with_a_name_has_an_answer(database, name):
    answer = database.ask(name)
    assert len(answer.columns) > 2
    if name != "kernels":  # of which a CPU has none
        assert answer.rows


def test_every_column_is_described(database):
    for table, columns in SCHEMA.items():
        found = database.ask(f"select column_name, data_type from information_schema.columns where table_name = '{table}'").rows
        assert [tuple(column) for column in found] == [(column.name, column.type) for column in columns], table


def test_the_first_of_several_processes_and_a_device():
    tracks = [Track(1, 1), Track(2, 2, "stream 2", "NPU", 3)]
    launch = op("aten::add", 0, 50, runtime("aclnnAdd", 10, 20, correlation=7))
    on_device = record(
        [launch, kernel("Add", 60, 90, stream=2, correlation=7)], tracks=tracks, info=Info(pid=7, parent_pid=5, use_device="npu")
    )
    other = record([scope("work", 0, 10)], info=Info(pid=8, parent_pid=7, command=("train.py", "a b")))
    with Database([on_device, other]) as database:
        (found,) = database.ask("select * from kernels").as_dicts()
        assert (found["name"], found["device"], found["duration_ns"], found["delay_ns"]) == ("Add", 3, 30, 50)
        assert database.ask("select name from events where row = (select launch from kernels) and process = 7").rows == (
            ("aclnnAdd",),
        )
        assert database.ask("select process, parent, command from processes").rows == ((7, 5, ""), (8, 7, "train.py 'a b'"))


def test_what_was_not_recorded_is_null():
    plain = record([op("aten::add", 0, 50)])
    assert query(plain, "select shapes, stack, place, module, memory_bytes, parent, sequence from events").rows == ((None,) * 7,)
    assert query(plain, "select memory_bytes from operators").rows == ((None,),)


def test_nothing_was_recorded():
    assert query(record([]), "top").rows == ()
    assert query(record([]), "select count(*) from events").rows == ((0,),)


def test_names_may_be_any_text():
    odd = record([scope("a'b\"c\x00\ud800;drop table events", 0, 10), op("é", 20, 30)])
    names = [row[0] for row in query(odd, "select name from events order by row").rows]
    assert names == ["a'b\"c\x00\\ud800;drop table events", "é"]


def test_wrong_sql_is_told_in_the_words_of_the_database(database):
    with pytest.raises(ValueError, match="Did you mean"):
        database.ask("select * from evnts")


def test_parquet_and_pandas(database, session, tmp_path):
    paths = database.to_parquet(tmp_path / "it's here")
    assert {"events.parquet", "operators.parquet", "steps.parquet"} <= {path.rsplit("/")[-1] for path in paths}
    events = next(path for path in paths if path.endswith("events.parquet")).replace("'", "''")
    assert database.ask(f"select count(*) from '{events}'").rows == ((len(session),),)
    with pytest.raises(ValueError, match="there is no table 'event'"):
        database.to_pandas("event")


def test_text(database):
    text = str(database.ask("select name, 1234567 as n, null as nothing from events where name = 'aten::relu' limit 1"))
    assert "aten::relu" in text
    assert "1,234,567" in text
