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


def rms_norm(X, weight):
    """X of shape [M, N], weight of shape [N] -> [M, N]"""
    x = _wide(X)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * _wide(weight)


def layer_norm(X, weight, bias):
    """X of shape [M, N], weight and bias of shape [N] -> [M, N]"""
    x = _wide(X)
    x = x - x.mean(axis=1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * _wide(weight) + _wide(bias)


def online_softmax(X):
    """X of shape [M, N] -> [M, N]; every row of the result sums to 1"""
    return softmax(X)


def column_sum(X):
    """X of shape [M, N] -> [N]"""
    return _wide(X).sum(axis=0)


def transpose_scale_bias(X, bias):
    """X of shape [M, N], bias of shape [N] -> [N, M]"""
    return (_wide(X) * 0.5 + _wide(bias)).T


def gemv(A, x):
    """A of shape [M, K], x of shape [K] -> [M]"""
    return _wide(A) @ _wide(x)


def cumsum(X):
    """X of shape [M, N] -> [M, N]"""
    return _wide(X).cumsum(axis=1)


def quantize_fp8(X, group=128, largest=448):
    """X of shape [M, N] -> Q of shape [M, N] before rounding, scales of shape [M, groups]"""
    x = _wide(X)
    starts = range(0, x.shape[1], group)
    scales = np.stack([np.abs(x[:, at : at + group]).max(axis=1) for at in starts], axis=1)
    scales = np.maximum(scales, 1e-4) / largest
    return x / scales.repeat(group, axis=1)[:, : x.shape[1]], scales


def top_k(X, k=6):
    """X of shape [M, N] -> values [M, k], largest first, and their columns [M, k]"""
    order = np.argsort(-_wide(X)[:, ::-1], axis=1, kind="stable")  # of equal ones the last first
    columns = X.shape[1] - 1 - order[:, :k]
    return np.take_along_axis(_wide(X), columns, axis=1), columns
