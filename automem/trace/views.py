"""The views that SQL over traces sees: their columns, types and meaning, and how they come from the files.

Types are stated, never inferred, so a view looks the same whatever the traces hold: an episode without a
single hook, a trace that was written before a field existed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from automem.metrics import Counts, rates
from automem.vocabulary import OPERATIONS

_OP = (
    "STRUCT(name VARCHAR, args VARCHAR[], span INTEGER[], result VARCHAR, ok BOOLEAN, found INTEGER, "
    'added BIGINT, duplicate BOOLEAN, truncated BOOLEAN, "by" VARCHAR, cut BOOLEAN)'
)
_SPENT = 'prompt_tokens BIGINT, completion_tokens BIGINT, cached_tokens BIGINT, cost DOUBLE, "seconds" DOUBLE'
_SAID = (
    'model VARCHAR, prompt STRUCT("before" VARCHAR, block VARCHAR, "after" VARCHAR), "text" VARCHAR, errors VARCHAR[]'
)
_TURNS = {
    "steps": f"STRUCT({_SPENT})[]",
    "turns": f"STRUCT({_SAID}, {_SPENT}, ops STRUCT(name VARCHAR)[])[]",
    "ops": f"STRUCT(ops {_OP}[])[]",
    "hook_events": "STRUCT(model VARCHAR)[]",
}
"""What each view reads of the turns of a phase: what is not named costs less."""

_RECORD = {
    "step": "INTEGER",
    "observation": "VARCHAR",
    "raw_action": "VARCHAR",
    "action": "VARCHAR",
    "invalid": "INTEGER",
    "fallback": "BOOLEAN",
    "reward": "DOUBLE",
    "progression": "DOUBLE",
    "achievements": "MAP(VARCHAR, BIGINT)",
    "terminated": "BOOLEAN",
    "truncated": "BOOLEAN",
    "warnings": "VARCHAR[]",
    "system": "VARCHAR",
    "maintained": f"{_OP}[]",
    "hooks": 'STRUCT("call" INTEGER, "method" VARCHAR, kind VARCHAR, "text" VARCHAR)[]',
}
"""A line of a trace (`automem.records.StepRecord`), as DuckDB reads it, without its turns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view.

    Attributes:
        name, type: as SQL sees them.
        meaning: in a few words.
        made: the expression that it is made of; empty for a column of the same name.
        brief: the same over brief records, where that is another one.
    """

    name: str
    type: str
    meaning: str
    made: str = ""
    brief: str = ""

    def expression(self, brief: bool) -> str:
        """For a SELECT list."""
        made = self.brief if brief and self.brief else self.made or f'"{self.name}"'
        return f'CAST({made} AS {self.type}) AS "{self.name}"'


@dataclass(frozen=True, slots=True)
class View:
    """A view: its name, what a row of it is, and its columns."""

    name: str
    meaning: str
    columns: tuple[Column, ...]


NOT_BRIEF = "not in brief records"
"""What DuckDB says when a query over brief records needs a text that they leave out."""

_LONG = f"error('{NOT_BRIEF}')"
"""Is an error only where it is really looked at: columns that a query does not use are never made."""

_NAMES_A_FILE = "o.name IN ({})".format(
    ", ".join(f"'{name}'" for name, operation in OPERATIONS.items() if operation.args[:1] == ("file",))
)

_EPISODE = (
    Column("run", "VARCHAR", "name of the run"),
    Column("task", "VARCHAR", "the task"),
    Column("seed", "BIGINT", "seed of the game"),
)
_STEP = (*_EPISODE, Column("step", "INTEGER", "from 0"))


def _count_columns() -> Iterator[Column]:
    """The sums of an episode and what people compare, with the meaning that `Counts` gives them."""
    said = _described(Counts)
    kinds = {"operations": "MAP(VARCHAR, BIGINT)", "cost": "DOUBLE", "model_seconds": "DOUBLE"}
    for field in fields(Counts):
        meaning = said.get(field.name, field.name.replace("_", " "))
        yield Column(field.name, kinds.get(field.name, "BIGINT"), meaning)
    for name in rates(Counts()):
        yield Column(name, "DOUBLE", f"{name.replace('_', ' ')}; NULL where there is nothing to divide by")


def _described(kind: type) -> dict[str, str]:
    """What the docstring of a class says of its attributes, by name."""
    found: dict[str, str] = {}
    said = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
    for entry in re.split(r"\n(?= {4}\w)", f"\n{said}"):
        names, _, meaning = entry.strip().partition(": ")
        found |= {name.strip(): " ".join(meaning.split()).rstrip(".") for name in names.split(",")}
    return found


def _sum(name: str) -> str:
    return f"coalesce(list_sum(list_transform(log || plan, lambda t: t.{name})), 0)"


EPISODES = View(
    "episodes",
    "an episode; sums and rates of behaviour are NULL until it is finished",
    (
        *_EPISODE,
        Column("finished", "BOOLEAN", "it has an episode.json"),
        Column("damaged", "BOOLEAN", "its trace cannot be read to the end"),
        Column("model", "VARCHAR", "the task model"),
        Column("scaffold", "VARCHAR", "SHA-256 identity of what was played; NULL while unfinished"),
        Column("steps_limit", "INTEGER", "steps at most"),
        Column("progression", "DOUBLE", "BALROG's score so far, 0 to 1"),
        Column("episode_return", "DOUBLE", "sum of rewards; NULL while unfinished"),
        Column("terminated", "BOOLEAN", "the game ended it"),
        Column("truncated", "BOOLEAN", "a limit ended it"),
        Column("achievements", "MAP(VARCHAR, BIGINT)", "what was reached, with counts"),
        Column("reached_at", "MAP(VARCHAR, BIGINT)", "achievement and the step that reached it; NULL while unfinished"),
        *_count_columns(),
    ),
)
STEPS = View(
    "steps",
    "a step of an episode",
    (
        *_STEP,
        Column("observation", "VARCHAR", "the game's text before the action", brief=_LONG),
        Column("action", "VARCHAR", "what was played"),
        Column("raw_action", "VARCHAR", "as the model wrote it; NULL when it committed none"),
        Column("invalid", "INTEGER", "actions written that the game does not have"),
        Column("fallback", "BOOLEAN", "none was committed and the game's default was played"),
        Column("reward", "DOUBLE", "of the action"),
        Column("progression", "DOUBLE", "BALROG's score after the action, 0 to 1"),
        Column("achievements", "MAP(VARCHAR, BIGINT)", "reached so far, with counts"),
        Column("terminated", "BOOLEAN", "the game ended here"),
        Column("truncated", "BOOLEAN", "a limit ended it here"),
        Column("log_turns", "INTEGER", "turns of LOG", "len(log)"),
        Column("plan_turns", "INTEGER", "turns of PLAN", "len(plan)"),
        Column("prompt_tokens", "BIGINT", "of all turns", _sum("prompt_tokens")),
        Column("completion_tokens", "BIGINT", "of all turns", _sum("completion_tokens")),
        Column("cached_tokens", "BIGINT", "of all turns", _sum("cached_tokens")),
        Column("seconds", "DOUBLE", "latency of all turns", _sum('"seconds"')),
        Column("warnings", "VARCHAR[]", "what was noticed from outside"),
        Column("system", "VARCHAR", "the system message, at step 0 only", brief=_LONG),
    ),
)
TURNS = View(
    "turns",
    "a call of the model",
    (
        *_STEP,
        Column("phase", "VARCHAR", "log or plan", "CASE WHEN i <= logs THEN 'log' ELSE 'plan' END"),
        Column("turn", "INTEGER", "of the phase, from 0", "CASE WHEN i <= logs THEN i - 1 ELSE i - logs - 1 END"),
        Column("model", "VARCHAR", "its name", "t.model"),
        Column(
            "prompt",
            "VARCHAR",
            "the user message; [observation] or [results] stands for that block",
            "concat(t.prompt.\"before\", CASE t.prompt.block WHEN '' THEN '' ELSE concat('[', t.prompt.block, ']') "
            'END, t.prompt."after")',
            _LONG,
        ),
        Column("reply", "VARCHAR", "what it wrote", 't."text"', _LONG),
        Column("ops", "INTEGER", "operations that were run", "len(t.ops)"),
        Column("errors", "VARCHAR[]", "what was not run, a line each", "coalesce(t.errors, [])"),
        Column("prompt_tokens", "BIGINT", "as the server counts them", "t.prompt_tokens"),
        Column("completion_tokens", "BIGINT", "tokens written", "t.completion_tokens"),
        Column("cached_tokens", "BIGINT", "of the prompt, from the server's cache", "t.cached_tokens"),
        Column("cost", "DOUBLE", "USD; NULL where no price is known", "t.cost"),
        Column("seconds", "DOUBLE", "latency", 't."seconds"'),
    ),
)
OPS = View(
    "ops",
    "a memory operation, or an own operation of the scaffold",
    (
        *_STEP,
        Column(
            "phase",
            "VARCHAR",
            "log or plan; maintain for what that hook asked for between them",
            "CASE WHEN i <= logs THEN 'log' WHEN i <= logs + plans THEN 'plan' ELSE 'maintain' END",
        ),
        Column(
            "turn",
            "INTEGER",
            "of the phase, from 0; NULL in maintain",
            "CASE WHEN i <= logs THEN i - 1 WHEN i <= logs + plans THEN i - logs - 1 END",
        ),
        Column("op", "INTEGER", "of the turn, from 0", "j - 1"),
        Column("name", "VARCHAR", "APPEND, SEARCH, ...", "o.name"),
        Column(
            "args",
            "VARCHAR[]",
            "its arguments; args[1] is the first",
            "o.args",
            f"CASE WHEN o.cut THEN {_LONG} ELSE o.args END",
        ),
        Column(
            "file",
            "VARCHAR",
            "the file it names; NULL for UPSERT_MAP and own operations",
            f"CASE WHEN {_NAMES_A_FILE} THEN o.args[1] END",
            f"CASE WHEN {_NAMES_A_FILE} THEN CASE WHEN o.cut AND len(o.args) = 0 THEN {_LONG} ELSE o.args[1] END END",
        ),
        Column("result", "VARCHAR", "what the model was told", "o.result", _LONG),
        Column("ok", "BOOLEAN", "false when it was refused", "o.ok"),
        Column("found", "INTEGER", "lines found by SEARCH or COUNT", "o.found"),
        Column("added", "BIGINT", "bytes that memory grew by", "coalesce(o.added, 0)"),
        Column("duplicate", "BOOLEAN", "it wrote what the file held already", "coalesce(o.duplicate, false)"),
        Column("truncated", "BOOLEAN", "the result was cut", "coalesce(o.truncated, false)"),
        Column("hook", "VARCHAR", "the hook that asked for it; empty when the model did", "coalesce(o.\"by\", '')"),
        Column("start", "INTEGER", "where it begins in the reply", "o.span[1]"),
        Column("stop", "INTEGER", "where it ends", "o.span[2]"),
    ),
)
HOOK_EVENTS = View(
    "hook_events",
    "something a hook did beyond answering, or that went wrong in it",
    (
        *_STEP,
        Column("call", "INTEGER", "which call of a hook in the step, from 0", 'h."call"'),
        Column("method", "VARCHAR", "the hook", 'h."method"'),
        Column("kind", "VARCHAR", "error, lost, off, repaired or again", "h.kind"),
        Column("text", "VARCHAR", "what went wrong, the action instead, or the reason", 'h."text"'),
    ),
)
ALL = (EPISODES, STEPS, TURNS, OPS, HOOK_EVENTS)

LONG = frozenset(column.name for view in ALL for column in view.columns if column.brief == _LONG)
"""Names of columns that brief records never have."""

_FROM = {
    "steps": "FROM {records}",
    "turns": "FROM (SELECT run, task, seed, step, len(log) AS logs, unnest(log || plan) AS t, "
    "generate_subscripts(log || plan, 1) AS i FROM {records})",
    "ops": "FROM (SELECT run, task, seed, step, logs, plans, i, unnest(ops) AS o, generate_subscripts(ops, 1) AS j "
    "FROM (SELECT run, task, seed, step, len(log) AS logs, len(plan) AS plans, "
    "unnest(list_transform(log || plan, lambda t: t.ops) || [maintained]) AS ops, "
    "generate_subscripts(range(len(log) + len(plan) + 1), 1) AS i FROM {records}))",
    "hook_events": "FROM (SELECT run, task, seed, step, unnest(hooks) AS h FROM {records})",
}


def episodes_table() -> str:
    """The statement that makes the table of episodes, empty."""
    columns = ", ".join(f'"{column.name}" {column.type}' for column in EPISODES.columns)
    return f"CREATE TABLE episodes ({columns})"


def over(traces: list[str], brief: bool, largest: int) -> list[str]:
    """The statements that make the other views over these files, which may hold brief records.

    There must be a table ``files`` with ``path``, ``run``, ``task`` and ``seed`` of each of them. `largest` is
    the most bytes that a line may have; DuckDB sets aside several times as much.
    """
    made = []
    for view in ALL:
        if view.name in _FROM:
            records = _records(traces, _RECORD | dict.fromkeys(("log", "plan"), _TURNS[view.name]), largest)
            selected = ", ".join(column.expression(brief) for column in view.columns)
            made.append(
                f"CREATE VIEW {view.name} AS SELECT {selected} {_FROM[view.name].replace('{records}', records)}"
            )
    return made


def _records(traces: list[str], record: Mapping[str, str], largest: int) -> str:
    """The lines of the files, with the episode that each belongs to, for a FROM."""
    listed = ", ".join(_quoted(path) for path in traces)
    columns = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in record.items())
    empty = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in record.items())
    source = (
        f"read_json([{listed}], format = 'newline_delimited', compression = 'zstd', filename = true, "
        f"maximum_object_size = {largest}, columns = {{{columns}}})"
        if traces
        else f"(SELECT {empty}, '' AS filename WHERE false)"
    )
    lists = ("log", "plan", "warnings", "maintained", "hooks")
    made = ", ".join(f'coalesce(r."{name}", []) AS "{name}"' if name in lists else f'r."{name}"' for name in record)
    return f"(SELECT f.run, f.task, f.seed, {made} FROM {source} r JOIN files f ON f.path = r.filename)"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
