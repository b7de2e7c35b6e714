from ..tensor import *  # noqa: F403
