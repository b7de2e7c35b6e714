"""torch's checkpoint formats, read and written without torch: :mod:`torchlike.serialization` is the public face."""
