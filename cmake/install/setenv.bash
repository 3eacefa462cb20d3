# shellcheck shell=bash
# Moeyard. SPDX-License-Identifier: Apache-2.0
# The same as ../set_env.sh, where run scripts of CANN's examples look for it.
# shellcheck source=set_env.sh
. "$(dirname "${BASH_SOURCE[0]}")/../set_env.sh"
