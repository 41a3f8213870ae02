"""A report of runs: one HTML file with figures, charts and a replay of every episode.

`gather.gather` reads the runs, `page.page` makes the file's text, `write.write` puts it on the disk. They are
imported where they are used: the processes that read episodes need no charts.
"""
