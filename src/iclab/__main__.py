"""`python -m iclab` is the command line."""

import sys

from iclab.cli import main

sys.exit(main())
