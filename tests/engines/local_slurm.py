"""A SLURM of one node in a folder, without root, cgroups or systemd, of Debian's slurmctld, slurmd and munge."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
PACKAGES = "slurmctld slurmd slurm-client munge"

CONF = """ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={other}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def absent() -> str:
    """The reason why there can be no SLURM here; empty where there can."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    return f"needs {', '.join(missing)} of Debian's {PACKAGES}" if missing else ""


@contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """A SLURM that runs; the environment of those who use it."""
    host = socket.gethostname().partition(".")[0]
    folder.chmod(0o755)
    for name, mode in (("munge", 0o711), ("state", 0o755), ("spool", 0o755)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    port = _free_port()
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    conf = CONF.format(host=host, port=port, other=_free_port(), user=user, folder=folder)
    (folder / "slurm.conf").write_text(conf)
    known = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "SLURM_CONF": str(folder / "slurm.conf")}
    munge = [f"--{name}={folder}/munge/{file}" for name, file in (
        ("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"),
    )]  # fmt: skip
    try:
        for command in (["munged", "--force", *munge], ["slurmctld", "-i"], ["slurmd"]):
            subprocess.run(command, env=known, check=True, capture_output=True, text=True)
        wait_for(lambda: asked(known, "sinfo", "-h", "-o", "%t") == "idle", 60)
        yield known
    finally:
        for file in ("slurmd.pid", "slurmctld.pid", "munge/pid"):
            stop(folder / file)


def asked(known: dict[str, str], *words: str) -> str:
    """The answer of a command of SLURM."""
    return subprocess.run(words, env=known, capture_output=True, text=True, check=False).stdout.strip()


def stop(file: Path) -> None:
    """End the process whose number stands in a file, and wait until it is gone."""
    try:
        number = int(file.read_text())
        os.kill(number, signal.SIGTERM)
        wait_for(lambda: not Path(f"/proc/{number}").exists(), 20)
    except (OSError, ValueError, AssertionError):
        return


def wait_for(holds, seconds: float) -> None:
    """Wait until it holds. Raises AssertionError where it never does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
