# shellcheck shell=sh disable=SC3028,SC3054
# Moeyard. SPDX-License-Identifier: Apache-2.0
#
# Makes this installation the one that programs are compiled with and run with:  source set_env.sh
# For bash and any POSIX shell, from any directory, as often as you like.

moeyard_find_root() {
  if [ -n "${BASH_SOURCE:-}" ]; then
    moeyard_file=$1
  else
    # A POSIX shell doesn't say which file it reads, but has it open.
    moeyard_file=
    for moeyard_open in /proc/"$$"/fd/*; do
      moeyard_open=$(readlink "$moeyard_open") || continue
      case $moeyard_open in
        */set_env.sh) moeyard_file=$moeyard_open ;;
      esac
    done
  fi
  [ -n "$moeyard_file" ] && CDPATH='' cd -- "$(dirname -- "$moeyard_file")" && pwd -P
}

# moeyard_first LIST DIRECTORY: the colon-separated list with the directory in front, and nowhere else
moeyard_first() {
  moeyard_rest=:$1:
  while :; do
    case $moeyard_rest in
      *":$2:"*) moeyard_rest=${moeyard_rest%%":$2:"*}:${moeyard_rest#*":$2:"} ;;
      *) break ;;
    esac
  done
  moeyard_rest=${moeyard_rest#:}
  moeyard_rest=${moeyard_rest%:}
  printf '%s' "$2${moeyard_rest:+:$moeyard_rest}"
}

moeyard_root=$(moeyard_find_root "${BASH_SOURCE:-}") || moeyard_root=
if [ -n "$moeyard_root" ]; then
  export ASCEND_HOME_PATH="$moeyard_root"
  export ASCEND_TOOLKIT_HOME="$moeyard_root"
  export ASCEND_INSTALL_PATH="$moeyard_root"
  export ASCEND_AICPU_PATH="$moeyard_root"
  export ASCEND_OPP_PATH="$moeyard_root/opp"
  PATH=$(moeyard_first "${PATH:-}" "$moeyard_root/bin")
  LD_LIBRARY_PATH=$(moeyard_first "${LD_LIBRARY_PATH:-}" "$moeyard_root/lib64")
  CMAKE_PREFIX_PATH=$(moeyard_first "${CMAKE_PREFIX_PATH:-}" "$moeyard_root")
  PKG_CONFIG_PATH=$(moeyard_first "${PKG_CONFIG_PATH:-}" "$moeyard_root/lib64/pkgconfig")
  export PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH
else
  echo "set_env.sh: this shell doesn't say where the file lies; source it from bash" >&2
fi
unset moeyard_root
unset -f moeyard_find_root moeyard_first
