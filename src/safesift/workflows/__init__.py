"""What users call: screen, path, range, repair, compress, choose μ."""
