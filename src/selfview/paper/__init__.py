"""The paper's experiments: what is run is data, and running, measuring and drawing are stages.

| module | what |
|---|---|
| printed | the paper's numbers |
| subjects, methods, metrics | its datasets, its methods and ours, its measures |
| budgets | epochs, rows, seeds and sweep points that fit a time |
| grid | every table and figure as the fits that it needs |
| cost | how long a fit and its measures will take |
| records | what came of a fit: one line of JSON each |
| training, measuring, running | fits to embeddings, embeddings to numbers, and both for a grid |
| plan, overview | the grid as jobs; what is done and how long the rest takes |
| results, formats, figures, reading, page | records to tables, pictures, a page; no torch |
"""
