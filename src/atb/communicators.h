// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "atb/infer_op_params.h"
#include "atb/types.h"
#include "hccl/hccl.h"

namespace moeyard::atb_layer {

// A rank's communicator, destroyed with its last holder unless it is the program's.
class Communicator {
 public:
  Communicator(::HcclComm comm, bool owned) : comm_(comm), owned_(owned) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ::HcclComm get() const { return comm_; }

 private:
  const ::HcclComm comm_;
  const bool owned_;
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

// The one that an earlier call with this key has made and somebody still holds; else what `make` makes.
HcclResult share(const std::string& key, const std::function<HcclResult(::HcclComm&)>& make,
                 CommunicatorPtr& shared);

// What parameters of operations say about their ranks.
struct Ranks {
  int rank, size, root;
  const std::string &backend, &table, &domain;
  atb::infer::CommMode mode;
  ::HcclComm given;

  template <class Param>
  static Ranks of(const Param& p) {
    return {p.rank, p.rankSize, p.rankRoot, p.backend, p.rankTableFile, p.commDomain, p.commMode, p.hcclComm};
  }
};
template <class Param>
auto fields_of_ranks(const Param& p) {
  return std::tie(p.rank, p.rankSize, p.rankRoot, p.backend, p.hcclComm, p.commMode, p.rankTableFile,
                  p.commDomain);
}

// `more`: a backend beside "hccl" and "lccl".
atb::Status check_ranks(const char* name, const Ranks& ranks, const char* more = "lccl");
// The communicator of an operation; blocks until all ranks have come, unless the rank has it already.
atb::Status connect(const char* name, const Ranks& ranks, CommunicatorPtr& communicator);

}  // namespace moeyard::atb_layer
