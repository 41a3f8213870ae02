"""What the shell offers when the tab key is pressed. Nothing is imported before it is asked for."""

from __future__ import annotations


def complete_run(incomplete: str) -> list[str]:
    """Runs."""
    from automem import runs

    return [run.config.name for run in runs.all_runs() if run.config.name.startswith(incomplete)]


def complete_task(incomplete: str) -> list[str]:
    """Tasks."""
    import games

    return [task for task in games.tasks() if task.lower().startswith(incomplete.lower())]


def complete_scaffold(incomplete: str) -> list[str]:
    """Versions of scaffolds."""
    from automem import scaffold

    return [ref for ref in scaffold.available() if ref.startswith(incomplete)]


def complete_target(incomplete: str) -> list[str]:
    """Suites and tasks."""
    from games import suites

    return [name for name in suites.names() if name.startswith(incomplete.lower())] + complete_task(incomplete)


def complete_bench_or_run(incomplete: str) -> list[str]:
    """Benches and runs."""
    from automem.bench import storage

    benches = [bench.config.name for bench in storage.all_benches()]
    return [name for name in benches if name.startswith(incomplete)] + complete_run(incomplete)
