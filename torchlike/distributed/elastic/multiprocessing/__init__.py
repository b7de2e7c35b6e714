"""What programs started by torchrun import of it."""
