"""Outer loop 2: good memory decisions are picked out of traces, and a LoRA memory specialist is trained on them.

Traces are collected (`specialist.collect`), candidates selected (`specialist.select`) and cleaned
(`specialist.clean`), an adapter is trained (`specialist.train`) and served beside the frozen base model
(`specialist.serve`), and plays; a decider chooses the next recipe by what came of it (`specialist.search`).
The parts know each other through `Candidate`, `Example`, `Recipe` and `Adapter`.
"""
