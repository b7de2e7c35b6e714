"""What a Python process started by an aliased one runs first; see `torchlike/_alias.py`."""
