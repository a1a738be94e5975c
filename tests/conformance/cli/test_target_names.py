"""Names of targets that are nearly right."""

from pathlib import Path

from click.testing import CliRunner

from conformance.cli import main


def test_a_program_without_exec_is_told_how_to_start_it(tmp_path: Path) -> None:
    program = tmp_path / "disk"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    result = CliRunner().invoke(main, ["doctor", "--target", str(program)])
    assert result.exit_code == 2 and f"give exec:{program}" in "".join(result.output.split("\n"))
