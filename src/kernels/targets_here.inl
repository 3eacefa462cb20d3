// Moeyard. SPDX-License-Identifier: Apache-2.0
// It being compiled is all that is asked of it.
inline void compiled_for_this_target() {}
