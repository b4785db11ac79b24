"""What evaluations and buffers say: statistics over tasks, matched comparisons, tables.

`comparison.compare` takes the episodes of an evaluation, `tables.render` shows what it found; `statistics` holds the
pure functions beneath.
"""
