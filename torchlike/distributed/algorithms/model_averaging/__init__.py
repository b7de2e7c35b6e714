"""Parameters that each process trains alone for a while, and their means."""
