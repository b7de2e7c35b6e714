"""Results of passes, and managers that run several."""
