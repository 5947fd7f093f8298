"""The tile IR: a typed tile program without warps, lanes or stages.

reads   the normal form (`build`)        writes  `forms.Function`
beside  `printer` (--emit ir), `verify`, `interpret` (its meaning in NumPy, the oracle of the tests)
"""
