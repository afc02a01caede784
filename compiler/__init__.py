"""From a model to a program of the machine."""
