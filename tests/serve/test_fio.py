"""fio verifies every block (CRC-32C) while devices fail, are rebuilt, and the server is killed."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.serving.served import Server, refmodel

Serve = Callable[..., Server]
JOB = {"size": "16m"}


def passed(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def statuses(server: Server) -> str:
    return refmodel("status", server.disk, status=None).stdout.decode()


def test_fio_notices_wrong_data(serve: Serve) -> None:
    """Without this, none of the others would mean anything."""
    server = serve("--blocks", 4096)
    passed(server.fio("write", **JOB, do_verify=0))
    refmodel("write", server.disk, 1000, "--text", "not what fio wrote")
    assert server.fio("verify", **JOB, verify_only=1).returncode != 0


@pytest.mark.parametrize("layout", ["mirror", "raid5-2+1", "raid5-4+1", "raid6-4+2"])
def test_verify_while_writing(serve: Serve, layout: str) -> None:
    server = serve("--blocks", 4096, "--layout", layout)
    passed(server.fio("mixed", **JOB, rw="randrw", verify_backlog=64))


def test_two_devices_of_raid6_fail_between_write_and_verify(serve: Serve) -> None:
    server = serve("--blocks", 4096, "--layout", "raid6-4+2")
    passed(server.fio("write", **JOB, do_verify=0))
    refmodel("fail", server.disk, 0)
    refmodel("fail", server.disk, 4, "--mode", "degraded")
    passed(server.fio("verify", **JOB, verify_only=1))
    assert statuses(server).count("absent") == 2 and "degraded" in statuses(server)


def test_a_rebuild_goes_on_under_fio(serve: Serve) -> None:
    server = serve("--blocks", 4096, "--layout", "raid6-4+2", "--spares", 1)
    passed(server.fio("write", **JOB, do_verify=0))
    with ThreadPoolExecutor() as threads:
        during = threads.submit(
            server.fio, "during", **JOB, verify_backlog=64, time_based=1, runtime=30
        )
        time.sleep(2)
        refmodel("fail", server.disk, 2, "--mode", "degraded")
        assert during.running()
        passed(during.result())
    refmodel("settle", server.disk)
    assert statuses(server).count(" active") == 3 + 6 and "spares: none" in statuses(server)
    rebuilt = json.loads(refmodel("stats", server.disk, "--json").stdout)["device.writes"]
    assert sum(sample["value"] for sample in rebuilt if sample["cause"] == "rebuild") > 0
    refmodel("fail", server.disk, 0)
    refmodel("fail", server.disk, 1)
    assert statuses(server).count("absent") == 4
    passed(server.fio("verify", **JOB, verify_only=1))


def test_a_killed_server_lost_nothing_that_was_acknowledged(serve: Serve) -> None:
    server = serve("--blocks", 4096, "--layout", "raid5-4+1")
    passed(server.fio("write", **JOB, do_verify=0))
    server.end(signal.SIGKILL)
    server.start()
    passed(server.fio("verify", **JOB, verify_only=1))


def test_killed_in_the_middle_of_writing(serve: Serve) -> None:
    """Data that fio wrote before is intact after the server dies while another area is written."""
    server = serve("--blocks", 8192, "--layout", "raid6-4+2")
    passed(server.fio("write", **JOB, do_verify=0))
    killer = threading.Timer(1.0, server.end, [signal.SIGKILL])
    killer.start()
    cut = server.fio("cut", size="16m", offset="16m", do_verify=0, time_based=1, runtime=60)
    killer.join()
    assert cut.returncode != 0
    server.start()
    passed(server.fio("verify", **JOB, verify_only=1))
    refmodel("scrub", server.disk)
