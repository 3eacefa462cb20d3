# shellcheck shell=bash
# Moeyard. SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder, which source it.
# shellcheck disable=SC2034  # variables are used there
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# At least one job, and one for each 2 GiB of memory, as that is what a large file takes to compile.
JOBS=${MOEYARD_JOBS:-$(awk -v cores="$(nproc)" '/^MemAvailable:/ {
  jobs = int($2 / 2097152); print jobs < 1 ? 1 : (jobs < cores ? jobs : cores) }' /proc/meminfo)}

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
fail() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Prints the comment at the head of the calling script: its text from the third line to the first line of code.
show_help() { sed -n '3,/^[^#]/{s/^# \{0,1\}//p}' "$0"; }

# Remembers how long each step took, for a summary at the end.
STEPS=()
step() {  # step NAME COMMAND ...: runs the command, ends the script if it fails
  local name=$1 from=$SECONDS code=0
  shift
  say "$name (after $SECONDS s)"
  "$@" || code=$?
  if [[ $code != 0 ]]; then
    STEPS+=("FAIL  $name ($((SECONDS - from)) s, exit code $code)")
    return "$code"
  fi
  STEPS+=("ok    $name ($((SECONDS - from)) s)")
}
