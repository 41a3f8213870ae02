"""Templates that place text, and cannot do more: a small part of Jinja2 whose cost is bounded.

Templates come with a scaffold, so a model may have written them, and they are rendered in this
process several times a step. They are compiled and run by Jinja2's immutable sandbox, which keeps
them from reaching anything; this package keeps them cheap. What computes belongs into ``hooks.py``,
which runs in a process of its own.

Why loading is cheap: the text of a template, the nodes of its syntax tree, their nesting, the
variables it sets and what it includes are all limited (`automem.templates.language`), and everything
outside the subset is refused by file and line before anything is compiled.

Why rendering is cheap:

- What runs without a loop is a node of the tree, and there are at most `language.EXPANDED` of them,
  included templates counted as often as they are included. Nothing can be called or defined:
  no macros, no blocks, no recursion, and includes make no circle.
- A ``for`` goes through a text, a list or a table that exists already, and pays for all its rounds
  before the first: the nodes of its body, and some more, a round. There is no ``range``.
- Numbers stay within `meter.LARGEST_NUMBER`, before and after each operator.
- Lists and tables that a template writes hold texts and numbers, or are literal, so none holds itself
  and none grows; a text can be made by a filter or a slice only.
- Filters, comparisons and slices are our own (`automem.templates.filters`, `automem.templates.operators`).
  Each pays for the characters that it touches and refuses, before it makes it, a result that is too long.
- A value that is shown is a text or a number; the message grows by it and is given up as soon as it
  is longer than `LARGEST_PROMPT`.

Payment is taken from a budget of `meter.WORK` units for one rendering: at most some 0.2 s of CPU time
when all of it is used, where v0 needs 20 microseconds and 31 units. The budget counts, it does not
measure, so a template fails at the same place on every machine and when an episode is resumed.
`meter.SECONDS` of CPU time are the last line, in case a unit costs more than we think.
"""

from automem.templates.environment import LARGEST_PROMPT, PromptTooLong, Templates
from automem.templates.language import TemplateProblem

__all__ = ["LARGEST_PROMPT", "PromptTooLong", "TemplateProblem", "Templates"]
