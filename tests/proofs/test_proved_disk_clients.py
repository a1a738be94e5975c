"""Programs that others wrote use the proved disk over NBD: fio verifies each block (CRC-32C),
qemu-io writes patterns, and an ext4 file system is read back from its snapshots."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.proved_disk import PROGRAM, call
from support.proved_server import asked
from support.serving.served import MISSING, Server, run

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"NOT RUN: {', '.join(MISSING)} missing (make serve-setup)"
)
LAYOUTS: list[tuple[str, ...]] = [
    ("--trees",),
    ("--mirrors", "2"),
    ("--raid5", "4", "--trees"),
    ("--raid6", "5"),
]
TOOLS = "/usr/sbin:/sbin:/usr/bin"
EXT4, DEBUGFS, FSCK = (
    shutil.which(name, path=TOOLS) for name in ("mkfs.ext4", "debugfs", "e2fsck")
)

Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serve a new disk of some blocks, with the layout that `create` is given."""
    server = Server(tmp_path, [str(PROGRAM)])

    def start(blocks: int, *layout: str, options: tuple[str, ...] = ()) -> Server:
        call("create", server.disk, "--blocks", blocks, *layout)
        server.start(*options)
        return server

    yield start
    server.stop()


def passed(server: Server, name: str, **options: object) -> None:
    done = server.fio(name, size="8m", **options)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("layout", [(), *LAYOUTS], ids=" ".join)
def test_fio_verifies_while_it_writes(serve: Serve, layout: tuple[str, ...]) -> None:
    passed(serve(2048, *layout), "mixed", rw="randrw", verify_backlog=64)


@pytest.mark.parametrize("profile", ["prefix", "block"])
def test_fio_verifies_with_write_back(serve: Serve, profile: str) -> None:
    """What is delayed is read from memory, and is on the devices when the server has ended."""
    server = serve(2048, "--mirrors", "2", options=("--profile", profile))
    passed(server, "write", fsync=300)
    assert server.end() == 0
    server.start()
    passed(server, "again", verify_only=1)


def test_two_devices_fail_between_write_and_verify(serve: Serve) -> None:
    server = serve(2048, "--raid6", "5")
    passed(server, "write", do_verify=0)
    for device in (0, 3):
        assert asked(server.disk, {"op": "fail", "device": device})["ok"]
    passed(server, "verify", verify_only=1)


def test_fio_notices_wrong_data(serve: Serve) -> None:
    """Without this, none of the others would mean anything."""
    server = serve(2048)
    passed(server, "write", do_verify=0)
    call("write", server.disk, 1000, "--text", "not what fio wrote")
    assert server.fio("verify", size="8m", verify_only=1).returncode != 0


@pytest.mark.parametrize("layout", LAYOUTS, ids=" ".join)
def test_qemu_io_reads_its_patterns(serve: Serve, layout: tuple[str, ...]) -> None:
    server = serve(256, *layout)
    written = ["write -P 0xa1 0 1M", "write -P 0xa2 1000 5000", "write -z 512k 64k", "flush"]
    read = [
        "read -P 0xa1 0 1000",
        "read -P 0xa2 1000 5000",
        "read -P 0xa1 6000 518288",
        "read -P 0 512k 64k",
    ]
    words = [word for command in written + read for word in ("-c", command)]
    done = run("qemu-io", "-f", "raw", *words, server.uri())
    assert b"failed" not in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.skipif(not (EXT4 and DEBUGFS and FSCK), reason="NOT RUN: e2fsprogs are missing")
def test_a_file_tree_is_read_back_from_each_snapshot(serve: Serve, tmp_path: Path) -> None:
    server = serve(4096, "--raid6", "5", "--trees")
    trees = {}
    for name in ("monday", "tuesday"):
        (tmp_path / name / "folder").mkdir(parents=True)
        trees[name] = {f"file-{n}": name.encode() * (997 * n + 1) for n in range(10)}
        for file, content in trees[name].items():
            (tmp_path / name / "folder" / file).write_bytes(content)
        image = tmp_path / f"{name}.img"
        run("truncate", "-s", "16M", image)
        run(EXT4, "-q", "-F", "-d", tmp_path / name, image)
        run("nbdcopy", image, server.uri())
        call("snapshot", server.disk, name)
    run("qemu-io", "-f", "raw", "-c", "write -P 0xee 0 16M", server.uri())
    assert asked(server.disk, {"op": "fail", "device": 1})["ok"]
    for name, files in trees.items():
        back = tmp_path / f"{name}-back"
        back.mkdir()
        run("nbdcopy", server.uri(name), back / "image")
        run(FSCK, "-fn", back / "image")
        run(DEBUGFS, "-R", f"rdump /folder {back}", back / "image")
        assert {file.name: file.read_bytes() for file in back.rglob("file-*")} == files
