# shellcheck shell=sh disable=SC3028,SC3054
# Moeyard. SPDX-License-Identifier: Apache-2.0
#
# Makes libatb of one C++ ABI the one that programs are compiled with and run with:
#   source atb/set_env.sh [--cxx_abi=0|1]
# Without the option it is the ABI of PyTorch if python3 has it, else 1. For bash and any POSIX shell; a shell that passes no
# arguments to a sourced file takes MOEYARD_CXX_ABI.

moeyard_find_atb() {
  if [ -n "${BASH_SOURCE:-}" ]; then
    moeyard_file=$1
  else
    # A POSIX shell doesn't say which file it reads, but has it open.
    moeyard_file=
    for moeyard_open in /proc/"$$"/fd/*; do
      moeyard_open=$(readlink "$moeyard_open") || continue
      case $moeyard_open in
        */atb/set_env.sh) moeyard_file=$moeyard_open ;;
      esac
    done
  fi
  [ -n "$moeyard_file" ] && CDPATH='' cd -- "$(dirname -- "$moeyard_file")" && pwd -P
}

# moeyard_atb_first LIST DIRECTORY ROOT: the colon-separated list with the directory in front, without other ABIs of ROOT
moeyard_atb_first() {
  moeyard_rest=:$1:
  for moeyard_old in "$2" "$3/cxx_abi_0/${2##*/}" "$3/cxx_abi_1/${2##*/}"; do
    while :; do
      case $moeyard_rest in
        *":$moeyard_old:"*) moeyard_rest=${moeyard_rest%%":$moeyard_old:"*}:${moeyard_rest#*":$moeyard_old:"} ;;
        *) break ;;
      esac
    done
  done
  moeyard_rest=${moeyard_rest#:}
  moeyard_rest=${moeyard_rest%:}
  printf '%s' "$2${moeyard_rest:+:$moeyard_rest}"
}

moeyard_abi=${MOEYARD_CXX_ABI:-}
case ${1:-} in
  --cxx_abi=0 | --cxx_abi=1) moeyard_abi=${1#--cxx_abi=} ;;
esac
if [ -z "$moeyard_abi" ]; then
  moeyard_abi=$(python3 -c 'import torch; print(int(torch.compiled_with_cxx11_abi()))' 2>/dev/null) || moeyard_abi=1
fi

moeyard_root=$(moeyard_find_atb "${BASH_SOURCE:-}") || moeyard_root=
if [ -n "$moeyard_root" ] && [ -d "$moeyard_root/cxx_abi_$moeyard_abi" ]; then
  export ATB_HOME_PATH="$moeyard_root/cxx_abi_$moeyard_abi"
  LD_LIBRARY_PATH=$(moeyard_atb_first "${LD_LIBRARY_PATH:-}" "$ATB_HOME_PATH/lib" "$moeyard_root")
  PATH=$(moeyard_atb_first "${PATH:-}" "$ATB_HOME_PATH/bin" "$moeyard_root")
  export LD_LIBRARY_PATH PATH
else
  echo "atb/set_env.sh: cannot find atb/cxx_abi_$moeyard_abi; source the file from bash, with --cxx_abi=0 or 1" >&2
fi
unset moeyard_root moeyard_abi
unset -f moeyard_find_atb moeyard_atb_first
