"""``python -m borelax`` is the command line."""

from borelax.cli import main

if __name__ == "__main__":
    main()
