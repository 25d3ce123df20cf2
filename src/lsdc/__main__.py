"""``python -m lsdc`` is ``lsdc``."""

from lsdc.cli.importing import importing


def main() -> None:
    """The command line."""
    with importing():
        from lsdc.cli.main import main as run
    run()


if __name__ == "__main__":
    main()
