"""``python -m lsdc`` is ``lsdc``."""

from lsdc.cli import main

if __name__ == "__main__":
    main()
