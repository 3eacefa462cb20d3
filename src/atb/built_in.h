// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bitset>
#include <string>
#include <vector>

#include "atb/context_impl.h"
#include "atb/operation.h"

namespace moeyard::atb_layer {

using Descs = atb::SVector<atb::TensorDesc>;

// What the tensors of an operation are.
struct Signature {
  std::uint32_t inputs = 1, outputs = 1;
  // Types that go together, one letter per tensor (type_of_letter), "hh>h ff>f"; null: any. '*' stands for any type.
  const char* types = nullptr;
  std::bitset<atb::MAX_SVECTOR_SIZE> optional = {};  // bit i: input i may be left away (dimNum 0)
  bool in_place = false;                             // an output may be an input, at the same address
};

// The life of the library's own operations: what Setup and Execute check, in which order, and what they keep. A kind of
// operation fills in what is its own.
class BuiltIn : public atb::Operation {
 public:
  std::string GetName() const final { return name_; }
  std::uint32_t GetInputNum() const final { return signature_.inputs; }
  std::uint32_t GetOutputNum() const final { return signature_.outputs; }
  atb::Status InferShape(const Descs& inputs, Descs& outputs) const final;
  atb::Status Setup(const atb::VariantPack& pack, std::uint64_t& workspace_size, atb::Context* context) final;
  atb::Status Execute(const atb::VariantPack& pack, std::uint8_t* workspace, std::uint64_t workspace_size,
                      atb::Context* context) final;

  virtual void set_stream_id(std::uint32_t id) { stream_id_ = id; }
  std::uint32_t stream_id() const { return stream_id_; }
  // The stream that all its work is on; Piece::kSeveral for a graph on several.
  virtual std::int64_t stream_of_work() const { return stream_id_; }

  static void* operator new(std::size_t bytes);
  static void operator delete(void* operation);

 protected:
  explicit BuiltIn(std::string name) : name_(std::move(name)) {}

  // After a change of parameters.
  void start_over(const Signature& signature) {
    signature_ = signature;
    ready_ = false;
  }

  // Shapes of the outputs, and types and formats where the signature has no types; the inputs were checked.
  virtual atb::Status infer(const Descs& inputs, Descs& outputs) const = 0;
  // Whether the inputs are tensors of the signature's types.
  virtual atb::Status check_inputs(const Descs& inputs) const { return check_descs(signature_, inputs); }
  atb::Status check_descs(const Signature& signature, const Descs& inputs) const;
  // Plans the call: all descriptors have been checked.
  virtual atb::Status plan(const atb::VariantPack& pack, ContextImpl& context,
                           std::uint64_t& workspace_size) = 0;
  // Takes addresses and workspace, without queuing anything.
  virtual atb::Status take(const atb::VariantPack& pack, std::uint8_t* workspace, ContextImpl& context) = 0;
  // Queues what was taken.
  virtual atb::Status launch(ContextImpl& context, aclrtStream stream) = 0;

  const char* name() const { return name_.c_str(); }
  const Signature& signature() const { return signature_; }

 private:
  atb::Status check_outputs(const atb::VariantPack& pack) const;
  atb::Status check_launch_mode(const atb::VariantPack& pack, ContextImpl& context) const;
  atb::Status set_up(const atb::VariantPack& pack, std::uint64_t& workspace_size, atb::Context* context);
  atb::Status check_call(const atb::VariantPack& pack, const std::uint8_t* workspace,
                         std::uint64_t workspace_size, ContextImpl& context) const;
  atb::Status check_tensors(const atb::SVector<atb::Tensor>& tensors, const char* what,
                            std::size_t first) const;
  atb::Status check_overlaps(const atb::VariantPack& pack) const;
  atb::Status execute(const atb::VariantPack& pack, std::uint8_t* workspace, std::uint64_t workspace_size,
                      atb::Context* context);
  void keep(const atb::VariantPack& pack);

  const std::string name_;
  Signature signature_;
  std::uint32_t stream_id_ = 0;

  // Of the last Setup.
  bool ready_ = false, executed_ = false, prepared_ = false;
  const atb::Context* context_ = nullptr;
  std::uint64_t workspace_size_ = 0;
  Descs in_descs_, out_descs_;
  std::vector<std::uint64_t> bytes_;  // of inputs, then outputs
};

// The stream that all work of any operation is on, as stream_of_work; those of a program's own stay on stream 0 unless they
// derive from OperationInfra.
std::int64_t stream_of(const atb::Operation* operation);
void set_stream_of(atb::Operation* operation, std::uint32_t id);

// "hh>h": the row of a signature's types that fits the inputs; its outputs begin after '>'. Null: none does.
const char* find_types(const Signature& signature, const Descs& inputs);
aclDataType type_of_letter(char letter);

// Bytes of a tensor, 0 if it is not one.
std::uint64_t bytes_of(const atb::TensorDesc& desc);

inline bool same_shape(const atb::Dims& a, const atb::Dims& b) {
  if (a.dimNum != b.dimNum) return false;
  for (std::uint64_t i = 0; i < a.dimNum && i < atb::MAX_DIM; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}
inline bool same_desc(const atb::TensorDesc& a, const atb::TensorDesc& b) {
  return a.dtype == b.dtype && a.format == b.format && same_shape(a.shape, b.shape);
}

}  // namespace moeyard::atb_layer
