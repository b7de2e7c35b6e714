"""torch.distributed.constants: how long groups wait."""

from datetime import timedelta

default_pg_timeout = timedelta(minutes=30)
