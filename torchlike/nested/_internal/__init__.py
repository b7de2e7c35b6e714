"""Where PyTorch keeps the class of jagged nested tensors, and its pickles look for it."""
