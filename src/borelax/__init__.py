"""borelax learns to explore from logs: offline meta-reinforcement learning in JAX."""

__version__ = "0.1.0"
