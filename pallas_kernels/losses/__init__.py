"""Cross-entropy losses."""

from pallas_kernels.losses.api import cross_entropy as cross_entropy
from pallas_kernels.losses.api import linear_cross_entropy as linear_cross_entropy
