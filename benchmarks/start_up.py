"""CPU seconds until the library answers. Promises: `import iclab` 0.3 s, `iclab --help` 0.6 s, no heavy modules."""

import os
import subprocess
import sys

from measure import promised

HELP = "import sys; from iclab.commands.main import main; sys.argv = ['iclab', '--help']; main()"
HEAVY = ("scipy", "xarray", "matplotlib", "jax")


def least_cpu_seconds(*arguments: str, repeats: int = 5) -> float:
    """The least user and system time of several processes."""
    spent = []
    for _ in range(repeats):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(spent)


if __name__ == "__main__":
    loaded = subprocess.run(
        [sys.executable, "-c", f"import iclab, sys; print(*(name for name in {HEAVY} if name in sys.modules))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    print(f"python alone {least_cpu_seconds('-c', ''):.2f} s")
    print(f"heavy modules loaded by `import iclab`: {loaded or 'none'}")
    promised("`import iclab`", least_cpu_seconds("-c", "import iclab"), 0.3)
    promised("`iclab --help`", least_cpu_seconds("-c", HELP), 0.6)
