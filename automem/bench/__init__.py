"""Benchmarks: suites played by several agents, with results that hold."""
