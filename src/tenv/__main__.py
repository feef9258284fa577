"""Run the command line as ``python -m tenv``."""

from tenv.cli.main import main

if __name__ == "__main__":
    main()
