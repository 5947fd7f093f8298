"""Turns the text of a kernel file into C++ that the host's compiler accepts.

reads   the kernel text after preprocessing (macros of the file expanded, its includes kept)
writes  C++ with the same lines: asm statements as calls of models, shared arrays placed in the
        block's arena, a table of the kernels at the end
"""
