"""Training: an adapter out of a dataset, by a recipe, in processes of its own (`specialist.train.run`).

Importing this package imports neither torch nor transformers.
"""
