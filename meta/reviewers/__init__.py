"""Reviewers, one file or folder each, behind `meta.reviewer.Reviewer`."""
