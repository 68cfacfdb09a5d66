"""`python -m iclab` is the command line."""

import sys

from iclab.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
