"""The command line; nothing in the library imports it."""
