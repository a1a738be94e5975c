from refmodel.cli import main

main(prog_name="refmodel")
