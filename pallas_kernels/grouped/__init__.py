"""Products of sorted rows with one matrix per group (mixture of experts)."""

from pallas_kernels.grouped.api import grouped_mm as grouped_mm
