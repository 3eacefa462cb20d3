// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "base/errors.h"
#include "comm/hosts/links.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

using Maker = Status* (*)(const char* function, Links** made);

struct Loaded {
  Maker maker = nullptr;
  std::string why;
};

Loaded load() {
  // Unless the user wants it otherwise, UCX leaves signals and the allocator of the program alone, and doesn't
  // speak up about variables that it doesn't know.
  for (const auto& [name, value] :
       {std::pair("UCX_HANDLE_ERRORS", "none"), std::pair("UCX_ERROR_SIGNALS", ""),
        std::pair("UCX_MEM_EVENTS", "n"), std::pair("UCX_WARN_UNUSED_ENV_VARS", "n"),
        std::pair("UCX_LOG_LEVEL", "fatal")})
    setenv(name, value, 0);
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&make_links), &here);
  std::string path = here.dli_fname != nullptr ? here.dli_fname : "";
  path = path.substr(0, path.rfind('/') + 1) + "libmoeyard_ucx.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, dlerror()};
  return {reinterpret_cast<Maker>(dlsym(library, "moeyard_make_ucx_links")), "it is not complete"};
}

}  // namespace

Result<std::unique_ptr<Links>> make_links(std::string_view function) {
  static const Loaded loaded = load();
  if (loaded.maker == nullptr)
    return fail(
        HCCL_E_NETWORK, TextCode::hccl_connection,
        "{}: ranks of several hosts need libmoeyard_ucx.so and UCX, which cannot be loaded: {}; install "
        "libucx0",
        function, loaded.why);
  Links* made = nullptr;
  if (const std::unique_ptr<Status> failure(loaded.maker(std::string(function).c_str(), &made));
      failure != nullptr)
    return *failure;
  return std::unique_ptr<Links>(made);
}

}  // namespace moeyard::comm
