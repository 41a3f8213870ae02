"""The page of a loop: what was tried, what was kept and why, and what it was worth; one HTML file.

`meta.page.page.render` makes the text and `meta.page.page.write` puts it on the disk. They are imported where they
are used: a loop that is being searched needs no charts.
"""
