"""How the share of zeros changes while a model trains."""
