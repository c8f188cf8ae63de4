"""`python -m selfview` is the command line."""

from selfview.cli import main

if __name__ == "__main__":
    main()
