"""Starting a function or a program in several processes from Python: what torchrun does from a shell."""
from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
