"""What chooses the elements that are zeros."""
