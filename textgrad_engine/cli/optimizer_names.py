"""How optimizers are named, for what needs no more than that: shells that complete them, and help."""

NAMES = ("TGD", "PatchSearch", "ParetoSearch", "BeamSearch", "OPRO", "BootstrapDemos", "RandomSearch")
"""The optimizers that a config file may name; the first one is meant where it names none."""
