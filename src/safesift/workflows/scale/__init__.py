"""Data larger than memory: exact models in a few passes over blocks of rows.

    survey (pass 1)  →  sample, solved  →  pass: evaluate, fold, hold  →  reduced problem, solved
                                           ↑________________________________________|

A pass is a function of a part of the source, mapped over the parts by an engine (`engine`), and a
sum over them whose tree depends on the parts only. It evaluates all problems at their points, adds
the rows that stay on their piece within some reach to Q, q, r, and holds the others. Between two
passes the problem of the held rows and of Q, q, r is solved by the library's own driver. What is
certified is measured on all rows, by the last pass.
"""
