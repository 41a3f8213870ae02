"""The search over recipes: collect, select, train, play, compare, and choose what to train next.

`loop` is the search from start to end; a decider (`specialist.search.decider`) proposes, the gate of loop 1
(`meta.gate`) decides what counts as better, and the ledger holds a row for each training run.
"""
