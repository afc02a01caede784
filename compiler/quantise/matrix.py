"""int8 matrices with one scale per output channel."""

import numpy as np

INT8_MAX = 127


def quantise_matrix(matrix):
    """Round a matrix to int8, one scale per output.

    Parameters
    ----------
    matrix : np.ndarray, [outputs, inputs]

    Returns
    -------
    integers : np.ndarray, int8, [inputs, outputs]
        Within -127 .. 127.
    scale : np.ndarray, float64, [outputs]
        matrix ~ (integers * scale).T; 1 where a whole row is zero.
    """
    matrix = np.asarray(matrix, np.float64)
    largest = np.abs(matrix).max(axis=1)
    scale = np.where(largest > 0, largest / INT8_MAX, 1)
    return np.rint(matrix / scale[:, None]).astype(np.int8).T.copy(), scale
