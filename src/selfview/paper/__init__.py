"""The paper's experiments as data, and the stages that train, measure and draw them.

| module | what |
|---|---|
| printed | the paper's numbers |
| datasets, methods, metrics | its datasets, its methods and ours, the columns of its tables |
| budgets | epochs, rows, seeds and sweep points that fit a time |
| grid, plan | every table and figure as rows and columns; the fits that they need, as jobs |
| overview | what is done, and how long the rest will take |
| records, provenance | results on disk: a line of JSON for each fit, arrays for the figures |
| training, measuring, running | fits to embeddings; embeddings to numbers; both |
| results, reading | records to cells of tables; to the paper's statements, held or not |
| formats, figures, page | tables as text, pictures, the page of all; no torch |
"""
