"""What the models of dialects without threads share: their build, entry points, number types.

reads   C++ sources of a model, a translation unit of a kernel text    writes  its shared object
"""
