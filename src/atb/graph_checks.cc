// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/graph_checks.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <vector>

#include "atb/failure.h"
#include "atb/graveyard.h"
#include "atb/operation.h"

namespace moeyard::atb_layer {
namespace {

using atb::Status;

constexpr std::size_t kLongestName = 128, kMostTensors = 256, kMostNodes = 1024;

template <class... Args>
Status bad_graph(const char* format, Args... args) {
  return fail(atb::ERROR_INVALID_GRAPH, format, args...);
}

Status check_name(const std::string& name) {
  const bool valid =
      name.size() <= kLongestName && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '_';
      });
  if (valid) return atb::NO_ERROR;
  return bad_graph(
      "GraphOperation: name is \"%.140s\" but must have at most 128 letters, digits and underscores",
      name.c_str());
}

Status check_count(const char* what, std::size_t count, std::size_t most) {
  if (count <= most) return atb::NO_ERROR;
  return bad_graph("GraphOperation: %s is %zu but must be at most %zu", what, count, most);
}

class Checker {
 public:
  explicit Checker(const atb::GraphParam& param)
      : param_(param),
        outputs_(param.inTensorNum),
        internal_(outputs_ + param.outTensorNum),
        written_(internal_ + param.internalTensorNum),
        read_(written_.size()) {
    std::fill_n(written_.begin(), param.inTensorNum, true);
  }

  Status nodes() {
    std::unordered_set<const atb::Operation*> seen;
    for (std::size_t i = 0; i < param_.nodes.size(); ++i) {
      const atb::Node& node = param_.nodes[i];
      if (node.operation == nullptr)
        return bad_graph("GraphOperation: node %zu has no operation; create one first", i);
      if (!seen.insert(node.operation).second || fate_of(node.operation) == Fate::owned)
        return bad_graph(
            "GraphOperation: the operation of %s belongs to another node; create one for each node",
            name(i).c_str());
      if (fate_of(node.operation) == Fate::destroyed)
        return bad_graph("GraphOperation: the operation of node %zu was destroyed; create another one", i);
      MOEYARD_ATB_TRY(count(i, "inTensorIds", node.inTensorIds.size(), node.operation->GetInputNum()));
      MOEYARD_ATB_TRY(count(i, "outTensorIds", node.outTensorIds.size(), node.operation->GetOutputNum()));
      MOEYARD_ATB_TRY(reads(i, node));
      MOEYARD_ATB_TRY(writes(i, node));
    }
    return atb::NO_ERROR;
  }

  Status everything_is_written() const {
    for (std::size_t id = outputs_; id < written_.size(); ++id)
      if (!written_[id])
        return bad_graph("GraphOperation: no node writes tensor %zu, %s; add it to a node's outTensorIds", id,
                         kind_of(id));
    for (std::size_t id = 0; id < read_.size(); ++id)
      if (!read_[id] && (id < outputs_ || id >= internal_))
        warn("GraphOperation: no node reads tensor %zu, %s", id, kind_of(id));
    return atb::NO_ERROR;
  }

 private:
  std::string name(std::size_t i) const { return name_of_node(i, param_.nodes[i].operation); }
  const char* kind_of(std::size_t id) const {
    return id < outputs_    ? "an input of the graph"
           : id < internal_ ? "an output of the graph"
                            : "an internal tensor";
  }

  Status count(std::size_t i, const char* what, std::size_t has, std::size_t needs) const {
    if (has == needs) return atb::NO_ERROR;
    return bad_graph("GraphOperation: %s has %zu %s but its operation needs %zu", name(i).c_str(), has, what,
                     needs);
  }

  Status exists(std::size_t i, std::uint32_t id) const {
    if (id < written_.size()) return atb::NO_ERROR;
    return bad_graph("GraphOperation: %s names tensor %u but the graph has %zu tensors", name(i).c_str(), id,
                     written_.size());
  }

  Status reads(std::size_t i, const atb::Node& node) {
    for (const std::uint32_t id : node.inTensorIds) {
      MOEYARD_ATB_TRY(exists(i, id));
      if (!written_[id])
        return bad_graph(
            "GraphOperation: %s reads tensor %u, %s, which no node before it has written; nodes stand in the "
            "order in which they run",
            name(i).c_str(), id, kind_of(id));
      read_[id] = true;
    }
    return atb::NO_ERROR;
  }

  Status writes(std::size_t i, const atb::Node& node) {
    for (const std::uint32_t id : node.outTensorIds) {
      MOEYARD_ATB_TRY(exists(i, id));
      const bool in_place =
          std::find(node.inTensorIds.begin(), node.inTensorIds.end(), id) != node.inTensorIds.end();
      if (written_[id])
        warn("GraphOperation: %s writes tensor %u, %s, which is already assigned%s", name(i).c_str(), id,
             kind_of(id), in_place ? " (in place)" : "");
      written_[id] = true;
    }
    return atb::NO_ERROR;
  }

  const atb::GraphParam& param_;
  const std::size_t outputs_, internal_;  // first id of each
  std::vector<bool> written_, read_;
};

}  // namespace

std::string name_of_node(std::size_t index, const atb::Operation* operation) {
  return "node " + std::to_string(index) + " (" + operation->GetName() + ")";
}

Status check_graph(const atb::GraphParam& param) {
  MOEYARD_ATB_TRY(check_name(param.name));
  MOEYARD_ATB_TRY(check_count("inTensorNum", param.inTensorNum, kMostTensors));
  MOEYARD_ATB_TRY(check_count("outTensorNum", param.outTensorNum, kMostTensors));
  MOEYARD_ATB_TRY(check_count("internalTensorNum", param.internalTensorNum, kMostTensors));
  MOEYARD_ATB_TRY(check_count("the number of nodes", param.nodes.size(), kMostNodes));
  Checker checker(param);
  MOEYARD_ATB_TRY(checker.nodes());
  return checker.everything_is_written();
}

}  // namespace moeyard::atb_layer
