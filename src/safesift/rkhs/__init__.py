"""Kernel methods: the same problem, with functions of a reproducing kernel space as its points.

Data flow, and the names along it:

    data → `kernels.Kernel` (entries K_ij) → `columns.GramColumns` (rows of K in blocks, cached
    within a budget) → `design.KernelDesign` (what a `Problem` asks of its rows)
    → `Problem` with the penalty `norm.SquaredNorm` → `solvers.kernel_path` (working sets)
    → `ball`, `curvature` (bounds from K_ii and the kernel rows of the support) → decisions → `Fit`

A point is h = Σ β_j φ(x_j), stored as the vector β (then the intercept c). The gradient of the
loss, (1/W) Σ s_i ν_i φ(x_i), has the coordinates s∘ν/W, so the optimum is β = −s∘ν/(alpha·W),
predictions are t = Kβ + c and ‖h‖² = βᵀKβ: a duality gap needs t, ν and norms, never an n × n
matrix.
"""
