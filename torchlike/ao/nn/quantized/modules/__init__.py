"""What quantized modules are made of."""
