"""``python -m textgrad_engine``: the command line."""

from textgrad_engine.cli.main import main

if __name__ == "__main__":
    main()
