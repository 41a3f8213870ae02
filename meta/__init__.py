"""Outer loop 1: a reviewer reads how a scaffold was played and rewrites it; a gate keeps what plays better.

Four things in four places, which know each other through small data types only: reviewers (`meta.reviewers`)
turn evidence into a revision, the checker (`automem.check`) says whether it can be used, the gate
(`meta.gate`) whether it plays better, and the search (`meta.search`) decides what is tried next.
"""
