import numpy as np

from compiler.quantise.matrix import quantise_matrix


def test_error_is_at_most_half_a_step(rng):
    matrix = (rng.normal(0, 1, (7, 50)) * np.exp(rng.normal(0, 4, (7, 1)))).astype(np.float32)
    integers, scale = quantise_matrix(matrix)
    assert integers.shape == (50, 7) and integers.dtype == np.int8
    np.testing.assert_array_equal(np.abs(integers.astype(int)).max(axis=0), 127)
    error = np.abs((integers * scale).T - matrix)
    assert np.all(error <= scale[:, None] * (0.5 + 1e-9))


def test_a_matrix_of_whole_steps_is_kept(rng):
    wanted = rng.integers(-127, 128, (9, 5))
    wanted[:, 0] = [127, -127, 127, -127, 127, 127, 127, 127, 127]
    steps = 2.0 ** np.arange(-4, 5)
    integers, scale = quantise_matrix((wanted * steps[:, None]).astype(np.float32))
    np.testing.assert_array_equal(integers, wanted.T)
    np.testing.assert_array_equal(scale, steps)


def test_an_output_of_zeros_has_a_scale():
    integers, scale = quantise_matrix(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(integers, 0)
    np.testing.assert_array_equal(scale, 1)
