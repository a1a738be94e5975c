"""Run the checkers of the specs: `python -m modelcheck`."""

from modelcheck.commands.group import EXIT_STATUS, Commands

NAMES = ("specs", "mutants", "apalache", "explain", "distributed", "mutation")

main = Commands(
    "modelcheck",
    NAMES,
    help=f"""Run TLC over the specs, and compare what comes out with specs/models.toml.

    {EXIT_STATUS}
    """,
)

if __name__ == "__main__":
    main(prog_name="python -m modelcheck")
