"""Training of the embedded model."""

from unmask.training.make import make
from unmask.training.recipe import RECIPES, Recipe, recipe

__all__ = ["RECIPES", "Recipe", "make", "recipe"]
