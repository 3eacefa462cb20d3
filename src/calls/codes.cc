// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/codes.h"

#include <algorithm>

#include "calls/functions.h"

namespace moeyard::calls {
namespace {

constexpr CodeAdvice kAdvice[] = {
    {"161001", "A required parameter is null, or a name that must be given is empty.",
     "Pass what the message names."},
    {"161002", "A data type, an address or a value that no mode of the operator accepts.",
     "The message has the parameter, its value and what it must be; moeyard explain OP PARAM has all its "
     "rules."},
    {"361001",
     "CANN's documents use it for failures while an operator runs; here they are the stream's error, 507015.",
     "Synchronise the stream and read aclGetRecentErrMsg() in the same thread."},
    {"561000", "A fault inside the library, or it is out of memory.",
     "Use smaller tensors if memory is short; else please report it with the message."},
    {"561002",
     "A shape, an attribute or a combination of parameters that the operator does not accept on this "
     "product, or a "
     "mode that is not supported yet.",
     "The message has the parameter, its value and what it must be; moeyard check tells all that is wrong "
     "with a "
     "call."},
    {"561003", "The operator does not exist on this product.",
     "Set MOEYARD_SOC to a product that has it (moeyard ops lists them), or to host."},
    {"561103", "The executor is null or has been used up.",
     "Call the first phase again before each second phase, or aclSetAclOpExecutorRepeatable once."},
    {"100000", "A parameter of an ACL function breaks a rule.", "The message names it."},
    {"100001", "aclInit has not been called, or aclFinalize has.", "Call aclInit first."},
    {"107000", "A parameter of a runtime function breaks a rule.", "The message names it."},
    {"107001", "There is no such device.",
     "Use a number below what aclrtGetDeviceCount gives; MOEYARD_DEVICES sets how many there are."},
    {"107002", "This thread has no context.", "Call aclrtSetDevice in each thread that uses a device."},
    {"107003", "The stream belongs to another context.",
     "Use streams and events in the context that was current when they were made."},
    {"107006", "An event's time was asked for that has not been recorded.",
     "Record it on a stream and synchronise first."},
    {"107008", "An address is not aligned as the function asks.", "The message has the alignment."},
    {"107017", "The handle is not alive: destroyed before, or no handle at all.",
     "Destroy a handle once, after all work that uses it."},
    {"107019", "A wait took longer than its limit.",
     "Wait longer, or look at what the stream is waiting for."},
    {"107020", "A task took longer than the limit that was set for it.", "Raise the limit."},
    {"107023", "The stream was aborted.", "Make a new stream, or repeat the work."},
    {"200000", "The process is out of memory.", "Free memory, or use smaller tensors."},
    {"207000", "The function is not supported; it compiles and links only.",
     "docs/limits.md lists what is not there."},
    {"207001", "Memory of the device could not be allocated.",
     "Free memory; devices share the memory of this machine."},
    {"500000", "A fault inside the library.", "Please report it with the message."},
    {"500001", "A child process of fork used the library.",
     "Start processes with exec (Python: the spawn method), or fork before the first call."},
    {"507000", "A fault inside the library while an operator ran.", "Please report it with the message."},
    {"507014", "The operator took longer than the limit that was set for it.",
     "Raise it with aclrtSetOpExecuteTimeOut."},
    {"507015",
     "An operator found wrong data while it ran: an expert id out of range, a mask with a true after a "
     "false, counts "
     "that do not fit, or ranks that passed different parameters.",
     "The message names rank, parameter and value; on every rank of the group it is the same story."},
    {"507017", "A scheduler of attention or FFN workers waited longer than its limit.",
     "See that the other side runs; the call can be repeated."},
    {"507018", "A scheduler found wrong data in its ScheduleContext.",
     "moeyard context FILE shows a dumped context and what is wrong with it."},
    {"507034", "An operator of attention or FFN workers waited longer than its limit.",
     "See that the other side runs; the call can be repeated."},
    {"507035", "An operator of attention or FFN workers found wrong data.",
     "The message names field and value."},
    {"507048",
     "A rank did not come to a collective call in time, is gone, or called another operator. The "
     "communicator is out "
     "of use.",
     "The message names the ranks that are missing and what each did last: look there. All ranks call the "
     "same "
     "operators in the same order, each from a thread or process of its own. MOEYARD_TIMEOUT_MS or "
     "HCCL_EXEC_TIMEOUT "
     "sets how long to wait; then make a new communicator."},
    {"HCCL_E_PARA", "A parameter of an HCCL function, or a variable of the environment, breaks a rule.",
     "HcclGetErrorString and aclGetRecentErrMsg() say which."},
    {"HCCL_E_PTR", "A required pointer is null.", "Pass what the message names."},
    {"HCCL_E_MEMORY", "Memory could not be allocated, or is not a device's.", "Use memory of aclrtMalloc."},
    {"HCCL_E_INTERNAL", "A fault inside the library.", "Please report it with the message."},
    {"HCCL_E_NOT_SUPPORT", "Not supported here.", "docs/limits.md lists what is not there."},
    {"HCCL_E_NOT_FOUND", "What was named does not exist.", "The message names it."},
    {"HCCL_E_UNAVAIL", "Not available now.", "The message says why."},
    {"HCCL_E_TIMEOUT",
     "Not all ranks came to the making of a communicator within HCCL_CONNECT_TIMEOUT: peers that never "
     "connect.",
     "The message names the ranks that are missing. Each rank must call HcclCommInitRootInfo with the same "
     "root info "
     "and number of ranks, a number of its own below that, and from a thread or process of its own, as the "
     "call waits "
     "for the others; a process that failed before is the usual reason. HCCL_CONNECT_TIMEOUT (seconds) gives "
     "slow "
     "ones more time."},
    {"HCCL_E_OPEN_FILE_FAILURE", "A file cannot be opened.", "The message names it."},
    {"HCCL_E_RUNTIME", "A call of the runtime failed.", "aclGetRecentErrMsg() says which."},
    {"HCCL_E_AGAIN", "Work is under way.", "Try again when it is done."},
    {"HCCL_E_REMOTE", "A peer failed, and the communicator is out of use.",
     "Find the first failure among all ranks; make a new communicator."},
    {"HCCL_E_SUSPENDING", "The communicator is suspended.", "Call HcclCommResume first."},
    {"HCCL_E_OOM", "Out of memory.", "Free memory, or use a smaller HCCL_BUFFSIZE."},
    {"EZ1001", "A message of an operator: a parameter, or data that it found.",
     "The sentence behind it says what."},
    {"EZ9999", "A message about a fault inside the library.", "Please report it."},
    {"EE1001", "A message of the runtime about a parameter.", "The sentence behind it says which."},
    {"EE1002", "A message of the runtime about a resource that is used up.",
     "The sentence behind it says which."},
    {"EE1003", "A message of the runtime about a call at the wrong time.",
     "The sentence behind it says what comes first."},
    {"EI0001", "A variable of the environment that HCCL reads has a wrong value.",
     "moeyard env lists them and what each may be."},
    {"EI0002", "A rank waited for others in a collective until its deadline.",
     "As for 507048: look at the ranks that the message names."},
    {"EI0003", "A parameter of HCCL.", "The sentence behind it says which."},
    {"EI0006", "Ranks did not find each other when a communicator was made.",
     "As for HCCL_E_TIMEOUT: look at the ranks that the message names."},
};

}  // namespace

std::span<const CodeAdvice> all_advice() { return kAdvice; }

const CodeAdvice* find_advice(std::string_view code) {
  const auto by_code = [](std::string_view wanted) {
    const auto found = std::ranges::find(kAdvice, wanted, &CodeAdvice::code);
    return found == std::end(kAdvice) ? nullptr : &*found;
  };
  if (const CodeAdvice* advice = by_code(code)) return advice;
  for (const CodeName& named : code_names()) {
    const std::string number = std::to_string(named.code);
    if (named.name == code) return by_code(number);
    if (number == code) return by_code(named.name);
  }
  return nullptr;
}

std::string name_of_code(std::int32_t code) {
  for (const CodeName& named : code_names())
    if (named.code == code) return std::string(named.name);
  return {};
}

}  // namespace moeyard::calls
