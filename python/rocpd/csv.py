"""`python3 -m rocpd.csv -i DATABASE ...`: the program rocpd2csv."""

from . import _become


def main(argv=None):
    """Runs rocpd2csv with these words, by default those of the command line. Does not return."""
    _become("rocpd2csv", argv)


if __name__ == "__main__":
    main()
