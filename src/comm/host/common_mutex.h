// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>

#include <cerrno>

namespace moeyard::comm {

// A mutex in memory that several processes may have mapped. When a process ends while it holds it, the next one
// gets it: what it guards must make sense at any moment.
class CommonMutex {
 public:
  explicit CommonMutex(bool several) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (several) {
      pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
      pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    }
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  CommonMutex(const CommonMutex&) = delete;

  void lock() { lock_and_tell(); }
  // False if the one that held it has ended meanwhile.
  bool lock_and_tell() {
    if (pthread_mutex_lock(&mutex_) != EOWNERDEAD) return true;
    pthread_mutex_consistent(&mutex_);
    return false;
  }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace moeyard::comm
