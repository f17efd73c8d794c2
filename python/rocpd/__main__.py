"""`python3 -m rocpd {convert,query,summary,merge} ...`"""

from . import _become


def main(argv=None):
    """Runs rocpd with these words, by default those of the command line. Does not return."""
    _become("rocpd", argv)


if __name__ == "__main__":
    main()
