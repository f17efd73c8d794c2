"""`python3 -m rocpd.otf2 -i DATABASE ...`: the program rocpd2otf2."""

from . import _become


def main(argv=None):
    """Runs rocpd2otf2 with these words, by default those of the command line. Does not return."""
    _become("rocpd2otf2", argv)


if __name__ == "__main__":
    main()
