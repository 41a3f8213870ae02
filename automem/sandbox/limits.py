"""What code of a scaffold may use. The run's owner sets it; a scaffold cannot."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["bubblewrap", "landlock", "unsafe"]


class SandboxConfig(BaseModel):
    """Section ``[sandbox]`` of a configuration file and of ``run.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unsafe: bool = False
    """Run scaffold code without containment where neither bubblewrap nor Landlock can run."""
    call_seconds: Annotated[float, Field(gt=0, le=600)] = 2.0
    """Wall-clock seconds of one call."""
    cpu_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    """CPU seconds of one episode's process."""
    memory_mb: Annotated[int, Field(ge=64, le=65_536)] = 256
    """MiB of address space of one episode's process."""
    processes: Annotated[int, Field(ge=0, le=64)] = 0
    """Further processes and threads that the code may start. More than 0 needs bubblewrap, and another user than
    root: nothing else counts them for each episode."""
    file_bytes: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0
    """Bytes of a file that the code may write. It finds no folder that it may write to anyway."""
    reply_bytes: Annotated[int, Field(ge=1_000, le=16_000_000)] = 256_000
    """Bytes of one answer, as JSON."""
    losses: Annotated[int, Field(ge=0, le=1_000)] = 10
    """How often an episode's process may be lost and started anew; after that the episode plays without hooks."""
