"""Arrays of other libraries, where they are: on a graphics card, or wherever else.

`places` finds out what an array is, moves numbers there and back, and knows what a device must not
do to them. `arrays` has the `DeviceArray`, which NumPy's functions take.
"""
