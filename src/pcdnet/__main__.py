"""`python -m pcdnet` is the command `pcdnet`."""

import sys

from pcdnet.cli import main

if __name__ == "__main__":
    sys.exit(main())
