"""torch.distributed.algorithms._checkpoint: modules that keep less between forward and backward."""
