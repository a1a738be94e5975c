"""`python -m refmodel`: the command `refmodel`."""

from refmodel.cli import main

main(prog_name="refmodel")
