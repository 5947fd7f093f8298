"""`python -m tile2c` is the command `tile2c`."""

from tile2c.transpile.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
