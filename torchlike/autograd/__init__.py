"""torch.autograd: differentiation of recorded operations."""
