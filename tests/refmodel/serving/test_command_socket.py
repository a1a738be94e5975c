"""The socket for commands in the folder of the disk."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from refmodel.serving.callbacks import Callbacks
from refmodel.serving.command_socket import Answer, CommandSocket
from refmodel.serving.exit_status import REFUSED, explained


class Refused(socket.socket):
    """A socket in a folder in which the process may make no file."""

    def bind(self, address: object) -> None:
        raise PermissionError(13, "Permission denied")  # as the host does, without a path


def test_a_socket_that_the_host_refuses_names_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", Refused)
    with closing(Callbacks()) as callbacks, pytest.raises(PermissionError) as refused:
        CommandSocket(tmp_path, callbacks, lambda arguments, stdin: Answer(b"", b"", 0))
    line = f"{tmp_path}/control: Permission denied"
    assert explained(refused.value) == (line, REFUSED)
