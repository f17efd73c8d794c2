"""`python3 -m rocpd.pftrace -i DATABASE ...`: the program rocpd2pftrace."""

from . import _become


def main(argv=None):
    """Runs rocpd2pftrace with these words, by default those of the command line. Does not return."""
    _become("rocpd2pftrace", argv)


if __name__ == "__main__":
    main()
