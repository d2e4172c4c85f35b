"""One room per paper: its recipes, its claims and its solvers; beside them the register and the data sets."""
