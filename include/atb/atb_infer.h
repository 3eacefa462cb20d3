// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// All of ATB.
#ifndef ATB_ATB_INFER_H
#define ATB_ATB_INFER_H

#include "atb/common_op_params.h"
#include "atb/context.h"
#include "atb/graph_op_builder.h"
#include "atb/infer_op_params.h"
#include "atb/operation.h"
#include "atb/svector.h"
#include "atb/train_op_params.h"
#include "atb/types.h"
#include "atb/utils.h"

#endif  // ATB_ATB_INFER_H
