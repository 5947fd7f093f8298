"""What each sample computes, in NumPy: `tile2c run OUT --against samples/references.py:gemm`.

A function takes a kernel's input arrays in the author's order and returns the expected output,
computed in double precision; the caller rounds it to the output's type.
"""

import numpy as np


def _wide(array):
    return np.asarray(array).astype(np.float64)


def add(A, B):
    """A, B of shape [N] -> [N]"""
    return _wide(A) + _wide(B)


def row_sum(X):
    """X of shape [M, N] -> [M]"""
    return _wide(X).sum(axis=1)


def softmax(X):
    """X of shape [M, N] -> [M, N]; every row of the result sums to 1"""
    x = _wide(X)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def gemm(A, B):
    """A of shape [M, K], B of shape [K, N] -> [M, N]"""
    return _wide(A) @ _wide(B)


def gemm_bias_relu(A, B, bias):
    """A of shape [M, K], B of shape [K, N], bias of shape [N] -> [M, N]"""
    return np.maximum(_wide(A) @ _wide(B) + _wide(bias), 0)
