"""What can be asked of a recording is the same while its profiler lives and after it was saved and loaded."""

import gzip

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import Results, _ExperimentalConfig, profile

from .networks import Net, x

EVERYTHING = {
    "record_shapes": True,
    "profile_memory": True,
    "with_stack": True,
    "with_modules": True,
    "with_flops": True,
    "experimental_config": _ExperimentalConfig(capture_overload_names=True),
}


@pytest.fixture(scope="module")
def live():
    net = Net()
    with profile(**EVERYTHING) as prof:
        for _ in range(3):
            net(x()).sum().backward()
    return prof


@pytest.fixture(scope="module")
def loaded(live, tmp_path_factory):
    path = tmp_path_factory.mktemp("sessions") / "run.session"
    live.session.save(path)
    return Results.load(path)


TEXTS = {
    "events": lambda results: repr(results.events()),
    "mappings": lambda results: repr([dict(event) for event in results.events()]),
    "table": lambda results: results.table(row_limit=30, max_width=150),
    "table with options": lambda results: results.table(sort_by="cpu_time_total", header="Mine", max_name_column_width=20),
    "averages": lambda results: results.key_averages().table(sort_by="self_cpu_time_total"),
    "averages by everything": lambda results: results.key_averages(True, 5, True, True).table(),
    "sum": lambda results: str(results.self_cpu_time_total),
    "modules": lambda results: results.by_module().table(),
    "leaks": lambda results: results.leaks().table(),
    "leaks by stack": lambda results: results.leaks(2).table(),
    "advice": lambda results: str(results.advise(min_share=0)),
}
FILES = {
    "trace.json": lambda results, path: results.export_chrome_trace(path),
    "trace.json.gz": lambda results, path: results.export_chrome_trace(path),
    "stacks.txt": lambda results, path: results.export_stacks(path),
    "timeline.json": lambda results, path: results.export_memory_timeline(path),
    "timeline.raw.json.gz": lambda results, path: results.export_memory_timeline(path),
    "timeline.html": lambda results, path: results.export_memory_timeline(path, device="cpu"),
}


@pytest.mark.parametrize("ask", TEXTS)
def test_the_same_text(live, loaded, ask):
    text = TEXTS[ask](live)
    assert text
    assert TEXTS[ask](loaded) == text


@pytest.mark.parametrize("name", FILES)
def test_the_same_file(live, loaded, name, tmp_path):
    written = []
    for results in (live, loaded):  # to the same path, which is in the trace
        FILES[name](results, str(tmp_path / name))
        data = (tmp_path / name).read_bytes()
        written.append(gzip.decompress(data) if name.endswith(".gz") else data)  # gzip writes the time of day
    assert written[0]
    assert written[0] == written[1]


def test_every_result_of_a_live_profiler_is_there():
    recording = {"start", "stop", "step", "prepare_trace", "start_trace", "stop_trace", "toggle_collection_dynamic"}
    recording |= {"add_metadata", "add_metadata_json", "preset_metadata_json", "get_trace_id", "set_custom_trace_id_callback"}
    recording |= {"action_map"}
    public = {name for name in dir(profile) if not name.startswith("_")}
    assert public - recording <= set(dir(Results))


def test_what_was_not_recorded_is_asked_for_alike(tmp_path):
    with profile() as live:
        torch.ones(2) * 2
    live.session.save(tmp_path / "run.session")
    loaded = Results.load(tmp_path / "run.session")
    calls = [
        lambda results: results.by_module(),
        lambda results: results.leaks(),
        lambda results: results.export_stacks(str(tmp_path / "stacks.txt")),
        lambda results: results.export_memory_timeline(str(tmp_path / "timeline.json")),
    ]
    for call in calls:
        errors = []
        for results in (live, loaded):
            with pytest.raises((ValueError, AssertionError)) as error:
                call(results)
            errors.append((type(error.value), str(error.value)))
        assert errors[0] == errors[1]


def test_garbage_can_be_collected_only_where_it_is(loaded):
    with pytest.raises(ValueError, match="for the process that recorded"):
        loaded.leaks(collect=True)


def test_events_are_made_once_and_changes_count(loaded):
    results = Results(loaded.session)
    assert results.events() is results.events()
    results.events()[0].name = "mine"
    assert "mine" in [row.key for row in results.key_averages()]


def test_saved_again(loaded, tmp_path):
    loaded.save(tmp_path / "again.session")
    assert Results.load(tmp_path / "again.session").key_averages().table() == loaded.key_averages().table()
