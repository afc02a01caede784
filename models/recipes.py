"""The models that are trained here, by name."""

from models import gemma4_mini, llama_mini

RECIPES = {recipe.name: recipe for recipe in (gemma4_mini.RECIPE, llama_mini.RECIPE)}


def add_model_option(parser):
    """Give a command-line parser ``--model NAME``."""
    parser.add_argument("--model", choices=RECIPES, default=gemma4_mini.RECIPE.name)
