"""The Rust and Go examples are built, and keep the contract."""

import subprocess

from support.examples import EXAMPLES, passes

BUILT = EXAMPLES.parents[1] / "build" / "examples"


def test_rust():
    subprocess.run(
        [
            "cargo",
            "build",
            "--quiet",
            "--release",
            "--target-dir",
            BUILT / "rust",
            "--manifest-path",
            EXAMPLES / "rust_disk" / "Cargo.toml",
        ],
        check=True,
        timeout=600,
    )
    assert passes(f"exec:{BUILT / 'rust' / 'release' / 'rust-disk'}").crashes > 0


def test_go():
    BUILT.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["go", "build", "-C", EXAMPLES / "go_disk", "-o", BUILT / "go-disk"],
        check=True,
        timeout=600,
    )
    assert passes(f"exec:{BUILT / 'go-disk'}").crashes > 0
