"""`python3 -m rocpd.summary -i DATABASE ...`: the program rocpd2summary."""

from . import _become


def main(argv=None):
    """Runs rocpd2summary with these words, by default those of the command line. Does not return."""
    _become("rocpd2summary", argv)


if __name__ == "__main__":
    main()
