"""Templates that want to hurt: nothing that they can say is expensive."""

from __future__ import annotations

import multiprocessing
import re
import resource
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automem.prompts import LARGEST_PROMPT, TemplateProblem
from automem.templates import language
from tests.templates import prompts, values

MIB = 1 << 20

DOUBLE = "{% set x = 'aaaaaaaa' %}" + "{% set x = OF %}" * 40
LOOPS = "{% for a in " + repr([0] * 500) + " %}"
HOSTILE: Mapping[str, str] = {
    "two nested ranges": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "nested loops over a literal": LOOPS * 3 + "{% endfor %}" * 3,
    "eight loops over the observation": "{% for a in observation %}" * 8 + "{% endfor %}" * 8,
    "a loop that shows a lot": LOOPS + "{{ observation }}" + "{% endfor %}",
    "a loop that keeps quiet": "{% for a in observation %}{% if a | upper | lower | title %}{% endif %}{% endfor %}",
    "a text times a number": "{{ 'a' * 10**10 }}",
    "a text times a plain number": "{{ 'a' * 10000000000 }}",
    "a list times a number": "{% set n = 1000000000 %}{% set x = [1] %}{{ x * n }}",
    "a tower of powers": "{{ 10**10**8 }}",
    "squares of squares": "{% set x = 99999 %}" + "{% set x = x * x %}" * 30 + "{{ x }}",
    "doubling by tilde": DOUBLE.replace("OF", "x ~ x"),
    "doubling by plus": DOUBLE.replace("OF", "x + x"),
    "doubling by join": DOUBLE.replace("OF", "[x, x] | join"),
    "doubling by replace": DOUBLE.replace("OF", "x | replace('a', 'aa')"),
    "doubling by a set block": "{% set x = 'a' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 40,
    "doubling by lists in lists": DOUBLE.replace("OF", "[x, x]") + "{{ x }}",
    "doubling by tables": DOUBLE.replace("OF", "{'a': x, 'b': x}") + "{{ x }}",
    "doubling by concatenated lists": "{% set x = [1] %}" + "{% set x = x + x %}" * 40,
    "a namespace that grows": "{% set n = namespace(x='a') %}" + LOOPS + "{% set n.x = n.x ~ n.x %}{% endfor %}",
    "a recursive macro": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "a recursive loop": "{% for a in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    "a block that calls itself": "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
    "a template that includes itself": "{% include 'plan.j2' %}{% include 'plan.j2' %}",
    "includes that double": "{% include 'a.j2' %}{% include 'a.j2' %}",
    "a loop of includes": LOOPS + "{% include 'k.j2' %}" * 50 + "{% endfor %}",
    "an import of itself": "{% import 'plan.j2' as p %}",
    "an extension of itself": "{% extends 'plan.j2' %}",
    "center": "{{ 'a' | center(10**9) }}",
    "center with a plain number": "{{ 'a' | center(1000000000) }}",
    "a format string": "{{ '%1000000000d' % 1 }}",
    "a format string in a variable": "{% set f = '%1000000000d' %}{{ f % 1 }}",
    "a format string in a test": "{{ '%1000000000d' is odd }}",
    "the format filter": "{{ '%1000000000d' | format(1) }}",
    "str.format": "{{ '{:>1000000000}'.format(1) }}",
    "replace of nothing": "{{ observation | replace('', observation) }}",
    "replace of a letter": "{{ observation | replace('e', observation) | replace('e', observation) }}",
    "indent": "{{ observation | indent(1000000000) }}",
    "indent of many lines": "{{ hooks.map | indent(100) | indent(100) | indent(100) }}",
    "join with a long text": "{% for a in step.history %}{{ step.history | join(observation) }}{% endfor %}",
    "join of letters": "{{ observation | join(observation) }}",
    "round to many digits": "{{ 1.5 | round(1000000000) }}",
    "int of many digits": "{{ ('9' | replace('9', observation)) | int }}",
    "a number of many digits": "{{ " + "9" * 20_000 + " }}",
    "a hexadecimal number": "{{ 0x" + "f" * 20_000 + " + 1 }}",
    "a number that is none": "{{ 1e308 * 10 }}",
    "truncate to a huge length": "{{ observation | truncate(1000000000000, end=observation) }}",
    "searches that take long": "{% if 'aaaaaaaaaaaaaaaaaaaaaaaab' in hooks.map %}{% endif %}" * 300,
    "cycling": LOOPS + "{{ loop.cycle(observation, observation) }}{% endfor %}",
    "batch": "{{ [1] | batch(1000000000, 0) | list }}",
    "slice": "{{ [1] | slice(1000000000) | list }}",
    "sum of lists": "{{ [[1], [2]] | sum(start=[]) }}",
    "group by": "{{ step.history | groupby('x') | groupby('y') }}",
    "wordwrap": "{{ observation | wordwrap(1) }}",
    "lorem ipsum": "{{ lipsum(n=1000000) }}",
    "urlize": "{{ observation | urlize }}",
    "deep parentheses": "{{ " + "(" * 10_000 + "1" + ")" * 10_000 + " }}",
    "a long sum": "{{ " + "1 + " * 7_000 + "1 }}",
    "a long chain of dots": "{{ step" + ".a" * 15_000 + " }}",
    "deep blocks": "{% if 1 %}" * 1_000 + "{% endif %}" * 1_000,
    "many expressions": "{{ memory | trim | upper | lower }}" * 480,
    "many variables": "".join(f"{{% set v{i} = 1 %}}" for i in range(1_000)),
    "many comments": "{#" * 15_000,
    "many quotes": "{{ '" + "\\'" * 15_000,
    "half of a raw block": "{% raw %}" + "{{" * 15_000,
    "256 kB": "{{ memory | upper }}" * 13_000,
    "256 kB in a loop": LOOPS + "{% if memory %}a{% endif %}" * 10_000 + "{% endfor %}",
    "the walk to object": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "the walk by attr": "{{ '' | attr('__class__') }}",
    "the walk by brackets": "{{ step['__class__'] }}{{ step['__' ~ 'class__'] }}",
    "the walk by a loop": "{% for a in ['__class__'] %}{{ step.action[a] }}{% endfor %}",
    "changing a list": "{{ step.history.append(1) }}",
    "cycler": "{% set c = cycler('a', 'b') %}{{ c.next() }}",
    "autoescape": "{% autoescape true %}{{ memory }}{% endautoescape %}",
}
DOUBLING = {a: f"{{% include '{b}.j2' %}}" * 2 for a, b in zip("abcdefghij", "bcdefghijk", strict=True)}
BIG = {
    "observation": "e " * 190_000,
    "hooks": {"alert": "e\n" * 150_000, "map": "a" * 29_000},
    "memory": "é" * 300_000,
    "pinned": "x" * 1_500_000,
}


def outcome(template: str) -> str:
    """What becomes of a template: loaded, then rendered with large texts."""
    files = {"k": "{{ memory }}", **(DOUBLING if "include 'a.j2'" in template else {})}
    try:
        made = prompts(template, **files)
    except TemplateProblem as problem:
        return f"refused: {problem}"
    try:
        return f"rendered: {len(made.render('plan.j2', values(**BIG)))}"
    except TemplateProblem as problem:
        return f"failed: {problem}"


def assert_told_or_bounded(said: str) -> None:
    kind, _, what = said.partition(": ")
    if kind == "rendered":
        assert int(what) <= LARGEST_PROMPT
    else:
        assert re.match(r"[a-z]+\.j2:\d+: \S", what), what
        assert len(what) < 700 and "MemoryError" not in what


def _contained(template: str, answer: Connection) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    with open("/proc/self/statm") as file:  # noqa: PTH123
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 512 * MIB, size + 512 * MIB))
    started = time.process_time()
    said = [outcome(template), outcome(f"{{% if 'e e' in observation %}}{template}{{% endif %}}")]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - used
    answer.send((said, time.process_time() - started, grown))


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_template_is_refused_or_stays_within_its_limits(what: str) -> None:
    """As it is, and where the trial does not come: behind a condition that only a real observation meets."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    child = fork.Process(target=_contained, args=(HOSTILE[what], there))
    child.start()
    there.close()
    try:
        said, seconds, grown = here.recv()
    except EOFError:
        child.join()
        pytest.fail(f"the process ended with {child.exitcode} before the template did")
    child.join()
    for one in said:
        assert_told_or_bounded(one)
    assert seconds < 2 and grown < 200 * MIB, (said, seconds, grown / MIB)


def words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


NAMES_USED = words(
    "memory observation step.number step.action step.history hooks.map hooks limits phase pinned x y "
    "loop.index loop.last loop.previtem range step nothing errors"
)
LITERALS = words("0 1 -3 999999999999 1.5 1e300 '' 'a' '%99999999d' true none")
FILTERS_USED = words(
    "upper title trim length first last reverse int abs items center(99999999) list round wordcount sum tojson join "
    "replace('a','aaaa') replace('',x) join(memory) indent(99) indent(x) d(1,1) truncate(5) truncate(99999999) "
    "round(15) default(x) batch(99999999)"
)
OPERATORS_USED = words("+ - * / // % ** ~ == < >= in is and or")


def _larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, smaller, OPERATORS_USED, smaller),
        st.builds("({} | {})".format, smaller, FILTERS_USED),
        st.builds("[{}, {}]".format, smaller, smaller),
        st.builds("{{'a': {}, 2: {}}}".format, smaller, smaller),
        st.builds("({} if {} else {})".format, smaller, smaller, smaller),
        st.builds("{}[{}]".format, smaller, smaller),
        st.builds("{}[{}:{}]".format, smaller, smaller, smaller),
        st.builds("{}.{}".format, smaller, st.sampled_from(["a", "upper", "__class__", "action"])),
        st.builds("{}({})".format, smaller, smaller),
        st.builds("({} is {})".format, smaller, st.sampled_from(["odd", "none", "defined", "string", "divisibleby 3"])),
    )


EXPRESSIONS = st.recursive(NAMES_USED | LITERALS, _larger, max_leaves=6)


def _block(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("{{% for x in {} %}}{}{{% endfor %}}".format, EXPRESSIONS, inner),
        st.builds(
            "{{% for y in {} if {} %}}{}{{% else %}}{}{{% endfor %}}".format, EXPRESSIONS, EXPRESSIONS, inner, inner
        ),
        st.builds("{{% if {} %}}{}{{% else %}}{}{{% endif %}}".format, EXPRESSIONS, inner, inner),
        st.builds("{{% with x = {} %}}{}{{% endwith %}}".format, EXPRESSIONS, inner),
        st.builds("{{% macro m() %}}{}{{% endmacro %}}".format, inner),
    )


TEMPLATES = st.recursive(
    st.one_of(
        st.builds("{{{{ {} }}}}".format, EXPRESSIONS),
        st.builds("{{% set x = {} %}}".format, EXPRESSIONS),
        st.sampled_from(["text\n", "{% include 'k.j2' %}", "{% set y = x %}", "{% endif %}"]),
    ),
    _block,
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(TEMPLATES, min_size=1, max_size=6).map("".join))
def test_any_template_is_refused_or_stays_within_its_limits(template: str) -> None:
    started = time.process_time()
    assert_told_or_bounded(outcome(template))
    assert time.process_time() - started < 2


SAFE = st.recursive(
    st.sampled_from(
        ["memory", "step.number", "step.history", "phase", "'ab'", "3", "hooks", "[1, 2]", "'é'", "pinned"]
    ),
    lambda inner: st.one_of(
        st.builds(
            "({} | {})".format,
            inner,
            st.sampled_from(["upper", "reverse", "length", "join(',')", "replace('a', 'bb')"]),
        ),
        st.builds("({} {} {})".format, inner, words("+ * - in == <"), inner),
        st.builds("{}[1:{}]".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(SAFE, min_size=1, max_size=12), st.integers(0, 3))
def test_what_is_allowed_stays_within_its_limits_when_it_runs(expressions: list[str], loops: int) -> None:
    """Expressions that pass the reading, behind a condition that the trial does not meet."""
    body = "".join(f"{{% if {expression} %}}{{{{ phase }}}}{{% endif %}}" for expression in expressions)
    opened = "{% for a in memory %}" * loops
    started = time.process_time()
    template = "{% if 'e e' in observation %}" + opened + body + "{% endfor %}" * loops + "{% endif %}"
    assert_told_or_bounded(outcome(template))
    assert time.process_time() - started < 2


def test_the_clock_is_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = prompts(
        "{% if 'e e' in observation %}{% for a in memory %}{% for b in memory %}{% endfor %}{% endfor %}{% endif %}"
    )
    given = values(observation="e e", memory="x" * 90)
    assert made.render("plan.j2", given) == ""
    monkeypatch.setattr(time, "thread_time", iter(range(100)).__next__)
    with pytest.raises(TemplateProblem, match=r"plan\.j2:1: rendering takes more than 1\.0 s; compute in hooks\.py"):
        made.render("plan.j2", given)


def test_the_limits_on_all_templates_together_hold() -> None:
    with pytest.raises(TemplateProblem, match=r"more than 20 templates"):
        prompts("-", **{f"part{i}": "-" for i in range(20)})
    each = "{{ phase }}" * (language.NODES - 2)
    with pytest.raises(TemplateProblem, match=r"more than 6000 parts in all templates"):
        prompts("-", **{f"part{i}": each for i in range(4)})
