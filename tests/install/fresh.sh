#!/usr/bin/env bash
# Install iclab into a fresh environment, ask it one question of one's own, and hold its size to a limit.
#   tests/install/fresh.sh PYTHON [EXTRA] LIMIT_IN_MB
# The environment and all that is written lie in a folder of their own, which is removed at the end.
set -euo pipefail
python=$1 extra=${3:+$2} limit=${3:-$2}
source=$(cd "$(dirname "$0")/../.." && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
unset PYTHONPATH PYTHONDONTWRITEBYTECODE
"$python" -m venv "$home/env"
"$home/env/bin/pip" install --quiet --disable-pip-version-check "$source${extra:+[$extra]}"
cd "$home"
env/bin/python -m compileall -q env/lib >/dev/null || true  # files that are templates are no Python
env/bin/iclab --version
seeds=$([ -n "$extra" ] && echo 1 || echo 0)
env/bin/iclab report abrupt-drop --eigenvalues 1,.6 --context-length 9 --seeds "$seeds" --steps 400 --rate .02
test -s report/index.html
megabytes=$(du -sm env | cut -f1)
echo "size $megabytes MB, at most $limit MB"
[ "$megabytes" -le "$limit" ]
