"""A small table with a column of every kind."""

import datetime

import numpy as np
import pandas as pd


def people(n=120, seed=0):
    """Numbers, categories, truth values, dates, ids, texts, gaps, constants, in a pandas frame."""
    rng = np.random.default_rng(seed)
    start = datetime.datetime(2021, 3, 1)
    days = [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 900, n)]
    age = np.round(rng.normal(40, 12, n), 1)
    age[::7] = np.nan
    city = rng.choice(["Ulm", "Bonn", "Kiel"], n).astype(object)
    city[::9] = None
    return pd.DataFrame(
        {
            "customer": [f"C{i:05d}" for i in range(n)],
            "row": np.arange(n),
            "age": age,
            "income": np.exp(rng.normal(10, 1, n)),
            "city": city,
            "plan": rng.choice(["basic", "pro"], n),
            "member": rng.random(n) < 0.3,
            "street": [f"street {i % 60}" for i in range(n)],
            "joined": days,
            "country": "DE",
            "empty": [None] * n,
            "remark": [f"the customer called {i} times about his bill" for i in range(n)],
        }
    )
