"""`python -m pcdnet` is the command `pcdnet`."""

import gc
import sys

from pcdnet.progress import phase, shown


def start() -> int:
    """Run the command line; Ctrl-C while it is still being loaded takes one sentence, too."""
    asks = {"--help", "-h", "--help-all", "--version"} & set(sys.argv)
    with shown(quiet=bool(asks) or len(sys.argv) == 1):  # the answer is quick, and all that is wanted
        try:
            with phase("starting"):
                from pcdnet.cli import main
        except KeyboardInterrupt:
            print("pcdnet: interrupted; nothing was begun", file=sys.stderr)
            return 130
        code = main()
    gc.freeze()  # or Python, on its way out, looks through all of torch for garbage: a second, and in silence
    return code


if __name__ == "__main__":
    sys.exit(start())
