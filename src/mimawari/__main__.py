"""Run the command line as `python -m mimawari`."""

from mimawari.app.cli import main

if __name__ == "__main__":
    main()
