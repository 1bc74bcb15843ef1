"""Compiled loops: the only place that knows Numba.

Modules here are imported when first needed. What is compiled is cached on disk where a folder for
that can be written (`caching`), so that a second process pays nothing. Threads come from
`safesift.arithmetic.threads`, never from Numba.
"""
