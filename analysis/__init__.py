"""What evaluations and buffers say: statistics over tasks, matched comparisons, tables, figures.

`comparison.compare` takes the episodes of an evaluation, `tables.render` shows what it found; `statistics` holds the
pure functions beneath. `main_table` and its neighbours take buffers and return pandas DataFrames (docs/analysis.md),
`figures` draws them.
"""
