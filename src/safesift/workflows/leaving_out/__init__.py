"""All models without one sample, or one group, at the price of about one model."""

from safesift.workflows.leaving_out.result import Influence, LeaveOneOut
from safesift.workflows.leaving_out.running import leave_one_out

__all__ = ["Influence", "LeaveOneOut", "leave_one_out"]
