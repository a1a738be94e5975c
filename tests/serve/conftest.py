"""The fixture `serve`: a disk that is served over NBD."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.serving.served import MISSING, Server, refmodel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        for item in items:
            if item.path.parent == Path(__file__).parent:
                item.add_marker(
                    pytest.mark.skip(
                        reason=f"NOT RUN: {', '.join(MISSING)} missing (make serve-setup)"
                    )
                )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING:
        terminalreporter.write_line(
            f"NOT RUN: tests/serve, for want of {', '.join(MISSING)} (make serve-setup)",
            red=True,
            bold=True,
        )


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Serve a new disk; the options are those of `refmodel create`."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        server = Server(Path(folder))

        def start(*options: object) -> Server:
            refmodel("create", server.disk, *options)
            server.start()
            return server

        yield start
        server.stop()
