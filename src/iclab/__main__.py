"""`python -m iclab` is the command line."""

import sys

from iclab.cli import main

if __name__ == "__main__":
    sys.exit(main())
