"""Where PyTorch keeps torch.func's parts; libraries import some of them by these names."""
