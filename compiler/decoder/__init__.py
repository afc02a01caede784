"""A quantised decoder as a program: partition over tiles, operations in order, regions of time."""
