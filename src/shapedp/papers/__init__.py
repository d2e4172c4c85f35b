"""One room per paper: its recipes, its claims and its solvers; beside them the register and the data sets.

A room holds `recipes.py` (what the paper publishes, as printed), `claims.toml` (what it states, with the numbers of the
paper and ours), `claims.py` (the functions that compute ours) and, where it has some, `solvers.py` and `training.py`.
To add a claim, write its entry and its function, then seal the register (`register/seal.py`). What packages below must
find by name is listed in `shapedp/_papers.py`.
"""
