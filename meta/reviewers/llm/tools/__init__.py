"""The tools of the meta-LLM, by what they are about."""

from collections.abc import Mapping

from meta.dialogue import traces
from meta.dialogue.tool import Tool
from meta.reviewers.llm.room import PARENT
from meta.reviewers.llm.tools import files, finishing, versions

RUNS = traces.tools(PARENT, "parent, or the number of an earlier attempt that was played.")

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*RUNS, *versions.TOOLS, *files.TOOLS, *finishing.TOOLS)}
"""Every tool by name, in the order in which they are offered."""
