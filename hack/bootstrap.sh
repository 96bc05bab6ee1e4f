#!/usr/bin/env bash
# Provide the missing requirements of the make targets. Print nothing if all are there.
#
#   hack/bootstrap.sh          Python's packages, our C extension, a JDK, Maven, npm, the store's jars
#   hack/bootstrap.sh python   Python's packages and our C extension only
#   hack/bootstrap.sh demo     a JDK, Maven and npm only, and then runs the demo
#
# Files go to .venv and to the user's cache (XDG_CACHE_HOME, UV_CACHE_DIR), the extension beside its
# source. Only a JDK, Maven and npm are installed into the system, by root on a machine with apt.
# Without a C compiler the extension is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${XDG_CACHE_HOME:-$HOME/.cache}/sluice"
log="$cache/bootstrap.log"

fail() {
  echo "sluice: $*" >&2
  exit 1
}

[[ $(uname) == Linux ]] || fail "make needs Linux. The quick start in README.md does not"

# Run a slow command. Print one line, and the command's own output only if it fails.
step() {
  local what=$1 start=$EPOCHREALTIME tenths
  shift
  mkdir -p "$cache"
  printf '%s ... ' "$what"
  if ! "$@" >"$log" 2>&1; then
    echo "failed:"
    tail -n 30 "$log" >&2
    exit 1
  fi
  # EPOCHREALTIME has six decimals, so without its point it is in microseconds.
  tenths=$(((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}) / 100000))
  echo "$((tenths / 10)).$((tenths % 10)) s"
}

find_python() {
  local candidate
  for candidate in .venv/bin/python python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  fail "Python 3.11 or newer is needed, and python3 is $(python3 --version 2>&1 || true)"
}

make_uv() {
  "$1" -m venv "$cache/uv" && "$cache/uv/bin/pip" install --quiet uv
}

provide_python() {
  local python uv
  python=$(find_python)
  uv=$(command -v uv || true)
  if [[ -z $uv ]]; then
    uv="$cache/uv/bin/uv"
    [[ -x $uv ]] || step "installing uv into $cache/uv" make_uv "$python"
  fi
  # Use this Python. Otherwise uv would download one to suit .python-version.
  UV_PYTHON=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  export UV_PYTHON UV_PYTHON_DOWNLOADS=never
  export DIST_EXTRA_CONFIG=$PWD/docker/wheel.cfg # for PySpark's wheel, which uv makes
  "$uv" sync --frozen --check --quiet 2>/dev/null ||
    step "installing Python packages into .venv" "$uv" sync --frozen
}

# Tell whether a JDK 17 or newer is installed; a Java runtime alone has no javac.
has_jdk() {
  local bin version
  bin=${JAVA_HOME:+$JAVA_HOME/bin/}
  command -v "${bin}java" >/dev/null || return 1
  version=$("${bin}javac" -version 2>&1) || return 1 # "javac 17.0.15"
  version=${version#javac }
  ((${version%%.*} >= 17))
}

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"
}

provide_programs() {
  local wanted=()
  has_jdk || wanted+=(openjdk-17-jdk-headless)
  command -v mvn >/dev/null || wanted+=(maven)
  command -v npm >/dev/null || wanted+=(npm)
  ((${#wanted[@]})) || return 0
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    fail "please install a JDK 17 or newer, Maven 3.6.3 or newer and npm (on Debian or Ubuntu:" \
      "sudo apt install ${wanted[*]}), or set JAVA_HOME"
  fi
  step "installing ${wanted[*]} with apt" apt_install "${wanted[@]}"
  has_jdk || fail "a JDK 17 was installed, but JAVA_HOME or PATH names another Java"
}

if [[ ${1:-} == demo ]]; then
  provide_programs
  python=$(find_python)
  exec "$python" hack/demo.py
fi
provide_python
.venv/bin/python docker/compile.py operator/sluice
if [[ ${1:-} != python ]]; then
  provide_programs
  # It shows its own progress, because it downloads 160 MB the first time.
  PYTHONPATH=hack .venv/bin/python -m localstore fetch
  .venv/bin/python hack/pageparts.py
fi
