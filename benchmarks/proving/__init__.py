"""The parts of ``benchmarks/optimizers.py``."""
