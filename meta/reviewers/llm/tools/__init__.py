"""The tools of the meta-LLM, by what they are about."""

from collections.abc import Mapping

from meta.reviewers.llm.tool import Tool
from meta.reviewers.llm.tools import files, finishing, runs, versions

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*runs.TOOLS, *versions.TOOLS, *files.TOOLS, *finishing.TOOLS)}
"""Every tool by name, in the order in which they are offered."""
