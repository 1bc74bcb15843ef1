"""Proofs that leave the process: files that `safesift_check` verifies without this library."""

from safesift.workflows.proofs.file import Proof, write_proof
from safesift.workflows.proofs.rows import DataColumns

__all__ = ["DataColumns", "Proof", "write_proof"]
