"""What each sample computes, in NumPy: `tile2c run OUT --against samples/references.py:gemm`.

A function takes a kernel's input arrays in the author's order and returns the expected output,
computed in double precision; the caller rounds it to the output's type.
"""

from itertools import pairwise

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


def gemm_warp_specialized(A, B):
    """A of shape [M, K], B of shape [K, N] -> [M, N]"""
    return gemm(A, B)


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


def batched_gemm(A, B):
    """A of shape [batch, M, K], B of shape [batch, K, N] -> [batch, M, N]"""
    return _wide(A) @ _wide(B)


def split_k_gemm(A, B, C):
    """A of shape [M, K], B of shape [K, N], C as it was before -> [M, N]"""
    return _wide(C) + _wide(A) @ _wide(B)


def fp8_gemm(A, B):
    """A of shape [M, K], B of shape [N, K] -> [M, N]"""
    return _wide(A) @ _wide(B).T


def int4_gemm(A, B, scales, group_size=128):
    """A of shape [M, K], B of shape [N, K / 2] in bytes, scales of shape [groups, N] -> [M, N]"""
    pairs = np.stack(((B << 4).astype(np.int8) >> 4, B >> 4), axis=-1)
    weights = _wide(pairs.reshape(len(B), -1)).T  # [K, N]
    return _wide(A) @ (weights * np.repeat(_wide(scales), group_size, axis=0)[: len(weights)])


def conv2d(data, kernel, stride=1, dilation=1, padding=1):
    """data of shape [N, H, W, C], kernel of shape [KH, KW, C, F] -> [N, OH, OW, F]"""
    image = np.pad(_wide(data), ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows, columns = kernel.shape[:2]
    height = (image.shape[1] - dilation * (rows - 1) - 1) // stride + 1
    width = (image.shape[2] - dilation * (columns - 1) - 1) // stride + 1
    found = np.zeros((len(image), height, width, kernel.shape[3]))
    for y, x in np.ndindex(rows, columns):
        part = image[:, y * dilation :: stride, x * dilation :: stride]
        found += part[:, :height, :width] @ _wide(kernel[y, x])
    return found


def _attention(q, k, v, causal):
    """q of shape [M, dim], k and v of shape [N, dim] -> [M, dim]; the last query sees the last key"""
    scores = _wide(q) @ _wide(k).T / np.sqrt(q.shape[1])
    if causal:
        last = np.arange(len(q))[:, None] + len(k) - len(q)
        scores = np.where(np.arange(len(k)) <= last, scores, -np.inf)
    return softmax(scores) @ _wide(v)


def flash_attention(Q, K, V, causal=True):
    """Q of shape [batch, heads, M, dim], K and V of shape [batch, heads, N, dim] -> as Q"""
    found = np.empty(Q.shape)
    for at in np.ndindex(Q.shape[:2]):
        found[at] = _attention(Q[at], K[at], V[at], causal)
    return found


def gqa_attention(Q, K, V, causal=True):
    """Q of shape [batch, N, heads, dim], K and V of shape [batch, N, heads / groups, dim] -> as Q"""
    groups = Q.shape[2] // K.shape[2]
    k, v = (np.repeat(x, groups, axis=2).swapaxes(1, 2) for x in (K, V))
    return flash_attention(Q.swapaxes(1, 2), k, v, causal).swapaxes(1, 2)


def varlen_attention(Q, K, V, starts, longest, causal=True):
    """Q, K, V of shape [total, heads, dim], sequences from starts[b] to starts[b + 1] -> as Q"""
    found = np.zeros(Q.shape)
    for first, last in pairwise(starts):
        for head in range(Q.shape[1]) if last > first else ():
            q, k, v = (x[first:last, head] for x in (Q, K, V))
            found[first:last, head] = _attention(q, k, v, causal)
    return found
