"""What is wrong with templates: names and parts by line, and what messages lack or cannot ask for."""

from __future__ import annotations

import pytest

from automem import ops
from tests.check.broken import Broken

SHOWS = '\n[hooks]\nshows = ["threats", "vitals"]\n'
HOOKS = "class Hooks:\n    def observe(self, step):\n        return {}\n"


@pytest.mark.parametrize("name", ["system.j2", "log.j2", "plan.j2", "results.j2", "handoff.j2"])
def test_all_five_are_there(broken: Broken, name: str) -> None:
    (broken.folder / "prompts" / name).unlink()
    assert broken.only("template-missing").file == f"prompts/{name}"


@pytest.mark.parametrize(
    ("file", "text", "code", "says"),
    [
        ("log.j2", "{{ seed }}", "template-variable", "'seed'"),
        ("system.j2", "{{ observation }}", "template-variable", "'observation'"),
        ("plan.j2", "{{ results }}", "template-variable", "'results'"),
        ("plan.j2", "{% if false %}{{ progress }}{% endif %}", "template-variable", "'progress'"),
        ("plan.j2", "{{ step.seed }}", "template-variable", "'seed'"),
        ("plan.j2", '{{ step["score"] }}', "template-variable", "'score'"),
        ("system.j2", "{{ limits.log_turn }}", "template-variable", "'log_turn'"),
        ("plan.j2", "{{ hooks.threats }}", "template-hook-text", "'threats'"),
        ("log.j2", "{% if %}", "template", ""),
        ("log.j2", "{{ step.__class__ }}", "template-variable", "'__class__'"),
        ("log.j2", "{{ memory.upper() }}", "template", "called"),
        ("log.j2", "{% macro m() %}{% endmacro %}", "template", "macro"),
        ("log.j2", "{{ memory | sha256 }}", "template", "sha256"),
        ("log.j2", '{% include "other.j2" %}', "template", "other.j2"),
        ("handoff.j2", "{{ 1 / 0 }}", "template", "Zero"),
    ],
)
def test_a_mistake_is_told_at_its_line(broken: Broken, file: str, text: str, code: str, says: str) -> None:
    broken.add(f"prompts/{file}", f"\n{text}\n")
    finding = broken.only(code)
    assert (finding.severity, finding.file) == ("error", f"prompts/{file}")
    assert finding.line == broken.line(f"prompts/{file}", text)
    assert says in finding.message
    assert finding.do


def test_every_template_and_every_name_is_told_of(broken: Broken) -> None:
    broken.add("prompts/log.j2", "{{ one }}\n{{ two }}\n").add("prompts/plan.j2", "{{ three }}").add(
        "prompts/results.j2", "\n{% for x in %}"
    )
    told = {(f.file, f.line) for f in broken.found()}
    assert told == {
        ("prompts/log.j2", broken.line("prompts/log.j2", "one }}")),
        ("prompts/log.j2", broken.line("prompts/log.j2", "two }}")),
        ("prompts/plan.j2", broken.line("prompts/plan.j2", "three }}")),
        ("prompts/results.j2", broken.line("prompts/results.j2", "{% for x in %}")),
    }


def test_included_templates_are_used_and_checked(broken: Broken) -> None:
    broken.write("prompts/more.j2", "Keep entries short.\n{{ seed }}\n")
    broken.add("prompts/log.j2", '\n{% include "more.j2" %}\n')
    finding = broken.only("template-variable")
    assert (finding.file, finding.line) == ("prompts/more.j2", 2)
    broken.write("prompts/more.j2", "Keep entries short.\n")
    assert not broken.found()


@pytest.mark.parametrize(
    ("file", "end", "severity"),
    [
        ("log.j2", "<|DONE|>", "error"),
        ("plan.j2", "<|ACTION|>", "error"),
        ("handoff.j2", "<|ACTION|>", "error"),
        ("results.j2", "<|DONE|>", "warning"),
        ("results.j2", "<|ACTION|>", "warning"),
    ],
)
def test_each_phase_says_how_it_is_finished(broken: Broken, file: str, end: str, severity: str) -> None:
    broken.change(f"prompts/{file}", end, "the end")
    finding = broken.only("no-terminator")
    assert (finding.severity, finding.file) == (severity, f"prompts/{file}")
    assert end in finding.do


@pytest.mark.parametrize(
    "instead", ["{{ hooks.vitals }}", "{{ operations }}", "{% if step.number == 2 %}<|DONE|>{% endif %}"]
)
def test_what_may_not_be_there_does_not_count_as_an_instruction(broken: Broken, instead: str) -> None:
    broken.write("hooks.py", HOOKS).add("scaffold.toml", SHOWS).change("prompts/log.j2", "<|DONE|>", instead)
    broken.add("prompts/plan.j2", "{{ hooks.vitals }}{{ hooks.threats }}")
    assert broken.only("no-terminator").file == "prompts/log.j2"


@pytest.mark.parametrize(
    ("file", "old", "severity"),
    [
        ("log.j2", "{{ observation }}", "error"),
        ("plan.j2", "{{ observation }}", "error"),
        ("results.j2", "{{ results }}", "error"),
        ("results.j2", "! {{ error }}", "warning"),
        ("system.j2", "{{ operations }}", "error"),
        ("system.j2", "{{ actions }}", "error"),
        ("system.j2", "{{ instructions }}", "error"),
        ("system.j2", "{{ files }}", "warning"),
    ],
)
def test_what_the_model_must_see_is_shown(broken: Broken, file: str, old: str, severity: str) -> None:
    broken.change(f"prompts/{file}", old, "")
    finding = broken.only("not-shown")
    assert (finding.severity, finding.file) == (severity, f"prompts/{file}")


def test_the_files_that_are_there_are_shown_unless_all_are_pinned(broken: Broken) -> None:
    for name in ("log.j2", "plan.j2"):
        broken.change(f"prompts/{name}", "{{ memory }}", "")
    assert broken.only("not-shown").severity == "warning"
    text = (broken.folder / "scaffold.toml").read_text()
    kinds = ('kind = "note"\n', 'kind = "log"\n')
    for kind in kinds:
        text = text.replace(kind, f"{kind}pin = true\n{'max_lines = 9' if 'log' in kind else ''}\n")
    broken.write("scaffold.toml", text)
    assert not broken.found()


def test_what_is_shown_at_some_steps_only_is_not_enough(broken: Broken) -> None:
    broken.change("prompts/plan.j2", "{{ observation }}", "{% if step.number < 40 %}{{ observation }}{% endif %}")
    assert broken.only("not-shown").file == "prompts/plan.j2"


def test_operations_may_be_shown_in_both_phases_instead(broken: Broken) -> None:
    broken.change("prompts/system.j2", "{{ operations }}", "")
    broken.add("prompts/log.j2", "\n{{ operations }}").add("prompts/plan.j2", "\n{{ operations }}")
    assert not broken.found()


@pytest.mark.parametrize("name", [n for n, operation in ops.OPERATIONS.items() if operation.effect == "write"])
def test_plan_asks_for_nothing_that_writes(broken: Broken, name: str) -> None:
    broken.change("scaffold.toml", '"WRITE", "CREATE"]', '"WRITE", "CREATE", "UPSERT", "UPSERT_MAP", "DELETE"]')
    broken.add("scaffold.toml", '\n[[files]]\nname = "m.txt"\nkind = "map"\nkey = "{x},{y}"\nentry = "{what}"\n')
    broken.add("prompts/plan.j2", f"\nThen write <|{name}|>x<|END|>.\n")
    finding = broken.only("write-in-plan")
    assert (finding.severity, finding.file) == ("error", "prompts/plan.j2")
    assert finding.line == broken.line("prompts/plan.j2", "Then write")


def test_the_branch_that_asks_for_a_write_in_plan_is_found(broken: Broken) -> None:
    branch = '{% if phase == "LOG" %}\nAdd <|APPEND|>f|x<|END|>.\n{% else %}\nOr <|APPEND|>f|x<|END|>.\n{% endif %}'
    broken.add("prompts/results.j2", f"\n{branch}")
    finding = broken.only("write-in-plan")
    assert (finding.file, finding.line) == ("prompts/results.j2", broken.line("prompts/results.j2", "Or <|APPEND|>"))


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("log.j2", "Choose <|ACTION|>name<|END|>.", "action-in-log"),
        ("plan.j2", "Finish with <|DONE|><|END|>.", "done-in-plan"),
        ("log.j2", "Use <|UPSERT|>file|key|value<|END|>.", "operation-not-enabled"),
        ("system.j2", "Use <|NEAR|>thing<|END|>.", "operation-not-enabled"),
    ],
)
def test_messages_ask_for_what_can_be_run(broken: Broken, file: str, text: str, code: str) -> None:
    broken.add(f"prompts/{file}", f"\n{text}\n")
    finding = broken.only(code)
    assert (finding.severity, finding.file, finding.line) == (
        "error",
        f"prompts/{file}",
        broken.line(f"prompts/{file}", text),
    )


@pytest.mark.parametrize("shown", ["operations | replace('APPEND', 'READ')", "operations[:200]"])
def test_the_reference_of_operations_is_shown_whole(broken: Broken, shown: str) -> None:
    broken.change("prompts/system.j2", "{{ operations }}", f"{{{{ {shown} }}}}")
    found = broken.found()
    assert {(f.code, f.severity, f.file) for f in found} == {("operation-hidden", "error", "prompts/system.j2")}
    assert any("<|APPEND|>file|text<|END|>" in f.message for f in found)


def test_own_operations_have_their_phase(broken: Broken) -> None:
    broken.write("hooks.py", "class Hooks:\n    def op_NEAR(self, args, memory):\n        return ''\n")
    broken.add("scaffold.toml", '\n[[ops.own]]\nname = "NEAR"\nmeaning = "what is near"\nphase = "log"\n')
    broken.add("prompts/log.j2", "\n<|NEAR|>thing<|END|>\n")
    assert not broken.found()
    broken.add("prompts/plan.j2", "\n<|NEAR|>thing<|END|>\n")
    assert broken.only("own-in-other-phase").line == broken.line("prompts/plan.j2", "NEAR")


def test_texts_that_no_template_shows_are_told(broken: Broken) -> None:
    broken.write("hooks.py", HOOKS).add("scaffold.toml", '\n[hooks]\nshows = [\n  "threats",\n  "vitals",\n]\n')
    broken.add("prompts/plan.j2", "{{ hooks.threats }}")
    finding = broken.only("text-not-shown")
    assert (finding.severity, finding.line) == ("warning", broken.line("scaffold.toml", "vitals"))
    broken.add("prompts/plan.j2", "{% for name in hooks %}{{ hooks[name] }}{% endfor %}")
    assert not broken.found()


def test_pinned_files_that_no_template_shows_are_told(broken: Broken) -> None:
    broken.add("scaffold.toml", '\n[[files]]\nname = "now.txt"\nkind = "note"\ndescribe = "now"\npin = true\n')
    assert not broken.found()
    for name in ("log.j2", "plan.j2"):
        broken.change(f"prompts/{name}", "{{ pinned }}", "")
    assert broken.only("pin-not-shown").line == broken.line("scaffold.toml", "pin = true")
