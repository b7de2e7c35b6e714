"""torch.utils.deterministic. New memory is always filled here, with zeros, so the switch has nothing to turn off."""

fill_uninitialized_memory = True
