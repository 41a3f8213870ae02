"""SQL over traces: what the views hold, and that a query can read them and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from automem import scaffold, trace
from automem.episode import RESULT, STEPS
from automem.errors import UserError
from automem.trace import query, query_process, views
from tests.traces import Written, a_run, mapping_scaffold, play


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> trace.EpisodeTrace:
    """A real episode with hooks, maps and an own operation."""
    base = tmp_path_factory.mktemp("sql")
    loaded = mapping_scaffold(base / "scaffold")
    play(base / "Crafter" / "seed-5", loaded, 20)
    return trace.EpisodeTrace(base / "Crafter" / "seed-5", loaded)


def rows(asked: Any, text: str, **more: Any) -> list[tuple[Any, ...]]:
    return list(trace.sql(asked, text, **more).rows)


def test_steps_are_the_records(episode: trace.EpisodeTrace) -> None:
    found = rows(
        episode,
        "select step, observation, action, raw_action, invalid, fallback, reward, progression, achievements, "
        "terminated, truncated, log_turns, plan_turns, prompt_tokens, completion_tokens, warnings, system from steps "
        "order by step",
    )
    expected = [
        (
            r.step, r.observation, r.action, r.raw_action, r.invalid, r.fallback, r.reward, r.progression,
            dict(r.achievements), r.terminated, r.truncated, len(r.log), len(r.plan),
            sum(t.prompt_tokens for t in (*r.log, *r.plan)), sum(t.completion_tokens for t in (*r.log, *r.plan)),
            list(r.warnings), r.system,
        )
        for r in episode.steps()
    ]  # fmt: skip
    assert found == expected


def test_turns_and_operations_are_the_records(episode: trace.EpisodeTrace) -> None:
    found = rows(episode, "select step, phase, turn, reply, prompt, ops, errors from turns order by step, phase, turn")
    assert found == [
        (r.step, phase, n, t.text, t.prompt.text(f"[{t.prompt.block}]"), len(t.ops), list(t.errors))
        for r in episode.steps()
        for phase, turns in (("log", r.log), ("plan", r.plan))
        for n, t in enumerate(turns)
    ]
    expected = [
        (
            r.step,
            phase,
            n,
            i,
            op.name,
            list(op.args),
            op.result,
            op.ok,
            op.found,
            op.added,
            op.duplicate,
            op.by,
            *op.span,
        )
        for r in episode.steps()
        for phase, turns in (("log", r.log), ("maintain", [None]), ("plan", r.plan))
        for n, t in enumerate(turns)
        for i, op in enumerate(r.maintained if t is None else t.ops)
    ]
    expected = [(*row[:2], None if row[1] == "maintain" else row[2], *row[3:]) for row in expected]
    asked = (
        "select step, phase, turn, op, name, args, result, ok, found, added, duplicate, hook, start, stop from ops "
        "order by step, phase, turn, op"
    )
    assert {row[1] for row in expected} >= {"log", "maintain"} and any(row[11] == "op_MARK" for row in expected)
    assert rows(episode, asked) == expected
    files = dict(rows(episode, "select distinct name, file from ops where name in ('UPSERT_MAP', 'MARK', 'CREATE')"))
    assert files["UPSERT_MAP"] is None and files["MARK"] is None and files["CREATE"].startswith("new")


def test_hook_events_and_the_episode_are_there(episode: trace.EpisodeTrace) -> None:
    expected = [(r.step, e.call, e.method, e.kind, e.text) for r in episode.steps() for e in r.hooks]
    assert expected
    assert rows(episode, 'select step, "call", method, kind, text from hook_events order by step, "call"') == expected
    found = rows(
        episode, "select task, seed, finished, damaged, steps, progression, operations, hook_ops from episodes"
    )
    result = episode.result
    assert result is not None
    counts = result.counts
    assert found == [("Crafter", 5, True, False, 20, result.progression, counts.operations, counts.hook_ops)]


@pytest.mark.parametrize(
    "text",
    [
        "select phase, name, count(*), sum(added), any_value(file) from ops group by all order by all",
        "select step, errors, model, seconds from turns order by all",
        "select args from ops where name in ('TAIL', 'DELETE', 'MARK') order by all",
        "select step, action, raw_action, achievements, reward, prompt_tokens, warnings from steps order by step",
    ],
)
def test_brief_records_and_whole_ones_answer_alike(
    episode: trace.EpisodeTrace, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    brief = trace.sql(episode, text)
    whole = trace.sql(episode, f"/* try */ {text}")
    assert brief == whole and brief.rows
    monkeypatch.setattr(query, "_whole", lambda *_: pytest.fail("the whole records were read"))
    assert trace.sql(episode, text) == brief


def test_types_are_those_of_the_schema_whatever_the_trace_holds(tmp_path: Path, episode: trace.EpisodeTrace) -> None:
    plain = Written(tmp_path / "Crafter" / "seed-1", scaffold.load("crafter/v0"))
    plain.step()
    plain.writer.close()
    none = Written(tmp_path / "Crafter" / "seed-2", scaffold.load("crafter/v0"))
    for asked in (episode, plain.asked(), none.asked()):
        for view in views.ALL:
            answer = trace.sql(asked, f"select * from {view.name} limit 1")
            stated = [(column.name, column.type) for column in view.columns]
            assert list(zip(answer.columns, answer.types, strict=True)) == stated
    said = query.schema()
    assert all(f"{view.name}: each row is" in said for view in views.ALL) and "hook_events" in said


def test_an_old_trace_without_newer_fields_can_be_asked(tmp_path: Path, episode: trace.EpisodeTrace) -> None:
    import orjson
    import zstandard

    frames = []
    for data in episode.raw():
        for name in ("maintained", "hooks", "warnings"):
            data.pop(name)
        for turn in (*data["log"], *data["plan"]):
            for op in turn["ops"]:
                op.pop("by")
        frames.append(zstandard.compress(orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE)))
    folder = tmp_path / "Crafter" / "seed-5"
    folder.mkdir(parents=True)
    (folder / STEPS).write_bytes(b"".join(frames))
    old = trace.EpisodeTrace(folder)
    assert len(old) == 20 and old.damage is None
    assert rows(old, "select count(*), count(distinct hook) from ops where hook = ''") == [
        (sum(len(t.ops) for r in episode.steps() for t in (*r.log, *r.plan)), 1)
    ]
    assert rows(old, "/* try */ select count(*) from hook_events") == [(0,)]
    assert rows(old, "select sum(len(warnings)) from steps") == [(0,)]


def test_several_runs_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / "runs"))
    for name in ("first", "second"):
        a_run(name, steps=5)
    each = "select run, task, seed, count(*) from steps group by all order by all"
    assert rows("first", each) == [("first", "Crafter", 7, 5), ("first", "Crafter", 8, 5)]
    assert rows(["first", trace.RunTrace("second")], f"/* try */ {each}") == [
        (run, "Crafter", seed, 5) for run in ("first", "second") for seed in (7, 8)
    ]
    assert rows("first", "select seed, stuck_share is null, operations['APPEND'] > 0 from episodes order by seed") == [
        (7, False, True),
        (8, False, True),
    ]
    text = rows("first", "select observation from steps where seed = 8 and step = 3")[0][0]
    assert text == trace.RunTrace("first").episode(seed=8).step(3).observation


@pytest.mark.parametrize("indexed", [True, False])
def test_a_damaged_trace_is_asked_as_far_as_it_is_whole(
    tmp_path: Path, episode: trace.EpisodeTrace, indexed: bool
) -> None:
    data = episode.path.read_bytes()
    folder = tmp_path / "Crafter" / "seed-5"
    folder.mkdir(parents=True)
    (folder / RESULT).write_bytes((episode.folder / RESULT).read_bytes())
    if indexed:
        (folder / f"{STEPS}.index").write_bytes((episode.folder / f"{STEPS}.index").read_bytes())
    for cut, torn in ((data[:-7], True), (data[:-200] + b"x" + data[-199:], False)):
        (folder / STEPS).write_bytes(cut)
        damaged = trace.EpisodeTrace(folder)
        assert damaged.damage is not None and damaged.damage.torn == torn
        answer = trace.sql(damaged, "select count(*), count(observation) from steps")
        assert answer.rows == ((len(damaged), len(damaged)),) and 0 < len(damaged) < 20
        assert len(answer.damage) == 1 and str(folder / STEPS) in answer.damage[0]
        assert rows(damaged, "select damaged, finished from episodes") == [(True, True)]
    (folder / STEPS).write_bytes(b"")
    assert rows(trace.EpisodeTrace(folder), "select count(*) from steps") == [(0,)]


def test_an_episode_that_is_still_played_can_be_asked(tmp_path: Path) -> None:
    written = Written(tmp_path / "Crafter" / "seed-1", scaffold.load("crafter/v0"))
    for number in range(5):
        written.step([("APPEND", "map_notes.txt", f"{number}")])
    asked = "select (select count(*) from steps), steps, finished, progression, stuck from episodes"
    assert rows(written.asked(), asked) == [(5, 5, False, 0.04, None)]
    assert rows(written.asked(), "select observation from steps where step = 4") == [("observation 4 ",)]


SECRET = "the contents of another file"

HOSTILE = (
    "select * from read_text('{secret}')",
    "select * from read_blob('{secret}')",
    "select * from read_csv('{secret}', header = false)",
    "select * from read_json('{secret}')",
    "select * from read_parquet('{secret}')",
    "select * from '{secret}'",
    "select * from glob('{folder}/*')",
    "select * from sniff_csv('{secret}')",
    "select * from read_text('/proc/self/environ')",
    "select * from read_text('/etc/passwd')",
    "select * from read_csv('http://127.0.0.1:{port}/x')",
    "select * from query('copy (select 1) to ''{target}''')",
    "copy (select 1) to '{target}'",
    "copy (select 1) to '{trace}' (use_tmp_file false)",
    "with a as (copy (select 1) to '{target}') select 1",
    "with a as (copy (select 1) to '{trace}' (use_tmp_file false)) select 1",
    "select 1) as q limit 1; copy (select 1) to '{target}'; select * from (select 1",
    "select 1) as q union all (with a as (copy (select 1) to '{target}') select 1",
    "export database '{target}'",
    "import database '{folder}'",
    "attach '{target}' as other",
    "attach '{secret}' as other (read_only)",
    "select * from sqlite_scan('{secret}', 't')",
    "install httpfs",
    "load httpfs",
    "install '{secret}'",
    "set enable_external_access = true",
    "set allowed_directories = ['/']",
    "set lock_configuration = false",
    "reset enable_external_access",
    "set memory_limit = '100GB'",
    "pragma database_list",
    "pragma enable_profiling = 'json'",
    "select * from enable_logging(storage = 'file', storage_path = '{target}')",
    "call enable_logging()",
    "create table t as select 1",
    "create or replace view steps as select 1",
    "drop view steps",
    "insert into episodes select * from episodes",
    "with a as (insert into files values ('a', 'b', 'c', 1) returning path) select * from a",
    "with a as (delete from episodes returning run) select * from a",
    "delete from episodes",
    "update episodes set seed = 1",
    "begin transaction; select 1",
    "select 1; select 2",
    "prepare p as select 1",
    "checkpoint",
    "vacuum",
    "use memory",
    "explain analyze select 1",
    "select getenv('HOME')",
    "select * from duckdb_secrets()",
    "create secret (type s3)",
    "select * from start_ui()",
    "select * from nosuch",
    "selct 1",
    "",
    ";",
    "select 1 as q) --",
    "/*",
)
"""Queries that must be refused, and must leave no trace of themselves."""


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that no query may see, in a folder where none may write."""
    monkeypatch.setenv("AUTOMEM_SECRET", SECRET)
    path = tmp_path / "secret.csv"
    path.write_text(f"{SECRET}\n")
    return path


def meant(text: str, secret: Path, episode: trace.EpisodeTrace) -> str:
    folder = secret.parent
    return text.format(secret=secret, folder=folder, target=folder / "made", trace=episode.path.resolve(), port=9)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_not_a_question_about_traces_is_refused(secret: Path, episode: trace.EpisodeTrace, text: str) -> None:
    # In this process, where nothing but DuckDB's own lock stands in the way, and over the trace itself.
    before = episode.path.read_bytes()
    request = query._request(meant(text, secret, episode), 10, [("", episode)], [[episode.path]], False, 2**24)
    try:
        said = query_process._answer(request)
    except duckdb.Error as error:
        said = {"error": str(error)}
    assert "rows" not in said and said["error"] and SECRET not in said["error"]
    assert [path.name for path in secret.parent.iterdir()] == ["secret.csv"] and secret.read_text() == f"{SECRET}\n"
    assert episode.path.read_bytes() == before


@pytest.mark.parametrize("text", HOSTILE[::9])
def test_a_refusal_is_an_error_for_people(secret: Path, episode: trace.EpisodeTrace, text: str) -> None:
    with pytest.raises(UserError, match="the query was not run") as refused:
        trace.sql(episode, meant(text, secret, episode))
    assert SECRET not in str(refused.value) and "Traceback" not in str(refused.value)


CONTAINED = """
import sys
sys.path.insert(0, {folder!r})
import query_process
query_process._contain([{allowed!r}])
open({allowed!r}, "rb").read(1)
for path, mode in (({secret!r}, "r"), ({allowed!r}, "r+"), ({target!r}, "w"), ("/etc/passwd", "r")):
    try:
        open(path, mode)
    except PermissionError:
        continue
    sys.exit(f"{{path}} could be opened")
"""


def test_the_process_can_open_the_traces_and_nothing_else(secret: Path, episode: trace.EpisodeTrace) -> None:
    from landlock import landlock_abi_version  # type: ignore[import-untyped]

    if landlock_abi_version() < 1:
        pytest.skip("this kernel has no Landlock")
    code = CONTAINED.format(
        folder=str(Path(query_process.__file__).parent), secret=str(secret), target=str(secret.with_name("made")),
        allowed=str(episode.path.resolve()),
    )  # fmt: skip
    tried = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    assert tried.returncode == 0, tried.stderr


def test_a_query_sees_neither_our_environment_nor_our_variables(
    episode: trace.EpisodeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOMEM_SECRET", SECRET)
    secret = [{"a": 1}]
    with pytest.raises(UserError, match="secret"):
        trace.sql(episode, "select * from secret")
    assert secret
    settings = rows(episode, "select name, value from duckdb_settings()")
    assert SECRET not in str(settings) and "/root" not in str(dict(settings).get("home_directory"))


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from range(1000000000000)",
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
        "select length(repeat('x', 3000000000))",
        "select list_sort(range(300000000))",
        "select a.step from steps a, steps b, steps c, steps d, steps e, steps f, steps g order by hash(a.step)",
    ],
)
def test_a_query_that_takes_all_it_can_is_ended(episode: trace.EpisodeTrace, text: str) -> None:
    start = time.monotonic()
    with pytest.raises(UserError, match=r"stopped after|too much memory"):
        trace.sql(episode, text, seconds=1.5)
    assert time.monotonic() - start < 20


def test_rows_and_texts_are_limited_and_it_is_told(episode: trace.EpisodeTrace) -> None:
    answer = trace.sql(episode, "select step from steps order by step", rows=3)
    assert answer.rows == ((0,), (1,), (2,)) and answer.more
    assert not trace.sql(episode, "select step from steps", rows=20).more
    long = trace.sql(episode, "select repeat('x', 100000) as a, [repeat('y', 50000)] as b").rows[0]
    assert len(long[0]) < query.CELL + 50 and long[0].endswith("80000 more characters]") and len(long[1][0]) < 21_000
    many = trace.sql(episode, "select repeat('x', 20000) from range(100000)", rows=100_000)
    assert many.more and 1 <= len(many.rows) < 1000
    with pytest.raises(UserError, match="0 rows"):
        trace.sql(episode, "select 1", rows=0)


def test_every_kind_of_value_arrives(episode: trace.EpisodeTrace) -> None:
    text = (
        "select 1, 1.5, 'a\x1b[31m', true, null, [1, 2], {'a': 1}, map([1], ['x']), date '2026-01-02', 'nan'::double, "
        "1.25::decimal(5, 2), '\\x00ff'::blob, 170141183460469231731687303715884105727::hugeint;"
    )
    assert rows(episode, text) == [
        (
            1, 1.5, "a\x1b[31m", True, None, [1, 2], {"a": 1}, {"1": "x"}, "2026-01-02", "nan", 1.25, str(b"\x00ff"),
            170141183460469231731687303715884105727,
        )
    ]  # fmt: skip


def test_a_question_that_is_given_up_leaves_no_process(episode: trace.EpisodeTrace) -> None:
    def children() -> set[int]:
        found = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.add(int(stat.parent.name))
        return found

    before = children()
    with pytest.raises(UserError, match="stopped after 1"):
        trace.sql(episode, "select count(*) from range(1000000000000)", seconds=1)
    assert children() <= before and threading.active_count() >= 1


def test_a_record_of_many_megabytes_can_be_asked(tmp_path: Path) -> None:
    written = Written(tmp_path / "Crafter" / "seed-1", scaffold.load("crafter/v0"))
    written.step(note="x" * 20_000_000)
    written.step()
    written.writer.close()
    asked = "select step, length(observation) > 20000000 from steps order by step"
    assert rows(written.asked(), asked) == [(0, True), (1, False)]
