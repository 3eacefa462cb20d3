// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/status.h"
#include "contract/contract.h"

namespace moeyard::contract {

// Everything phase one can know of a call, in this order, first failure returned:
//   1 the operator exists on this product (561003)
//   2 required tensors are there; rules of Stage::nulls
//   3 every tensor is well formed: known dtype, at most 8 dimensions, no negative one (161002);
//     rules of Stage::strings
//   4 dtypes, then formats, in the order of the prototype; same_dtype_as
//   5 rules of Stage::attributes
//   6 shapes, in the order of the prototype; rules of Stage::shapes
//   7 outputs: none overlaps itself, contiguous-only ones are contiguous (161002)
// `function` is the name of the C function for messages ("aclnnMoeUpdateExpert"), `args` the operator's
// argument struct.
Status check(const Contract& contract, std::string_view function, const void* args);

// The message of a broken rule, for rules that an operator's plan function finds itself:
// "<function>: <subject> is <value> but must <must> (<other names> = <values>); <way out>."
std::string explain(const Contract& contract, std::string_view function, const void* args,
                    std::string_view subject, std::string_view must, std::string_view way_out = {});

// Calls visit(name, view, direction) for each tensor in prototype order, members of lists one by one.
template <class Visit>
void for_each_tensor(const Contract& contract, void* args, Visit&& visit) {
  for (const Param* param : contract.tensors()) {
    if (param->access.tensor != nullptr)
      visit(*param, *param->access.tensor(args));
    else
      for (TensorView& item : param->access.list(args)->items) visit(*param, item);
  }
}

}  // namespace moeyard::contract
