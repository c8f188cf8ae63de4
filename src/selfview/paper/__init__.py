"""The paper's experiments as data, and the stages that train, measure and draw them.

| module | what |
|---|---|
| printed | the paper's numbers |
| datasets, methods, metrics | its datasets, its methods and ours, the columns of its tables |
| budgets | epochs, rows, seeds and sweep points that fit a time |
| grid, plan | every table and figure as rows and columns; the fits that they need, as jobs |
| cost, overview | how long a fit takes; what is done and how long the rest takes |
| records | results on disk: a line of JSON for each fit, arrays for the figures |
| samples, training, measuring, running | rows; fits to embeddings; embeddings to numbers; both |
| results, formats, figures, reading, page | records to tables, pictures, a page; no torch |
"""
