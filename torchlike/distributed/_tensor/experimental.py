from ..tensor.experimental import implicit_replication  # noqa: F401
