/* Sources. */
#include "rows.h"

static const OpCase rows[] = {
    { CORNU_OP_CONSTANT, { .constant = { CORNU_F32, -2.5 } }, .out = { D(-2.5) },
      .near = NEAR_EXACT },
    { CORNU_OP_CONSTANT, { .constant = { CORNU_U8, 255 } }, .out = { D(255) },
      .near = NEAR_EXACT },
    { CORNU_OP_CONSTANT, { .constant = { CORNU_I32, 2.5 } }, .refused = CORNU_ERR_VALUE },
    { CORNU_OP_CONSTANT, { .constant = { CORNU_U8, 256 } }, .refused = CORNU_ERR_VALUE },
    { CORNU_OP_CONSTANT, { .constant = { CORNU_DTYPE_COUNT, 0 } },
      .refused = CORNU_ERR_DTYPE },
    { CORNU_OP_IOTA, { .iota = { CORNU_I64, 2, { 2, 3 }, 1 } }, .out = { D(0, 1, 2, 0, 1, 2) },
      .near = NEAR_EXACT },
    { CORNU_OP_IOTA, { .iota = { CORNU_F32, 3, { 2, 2, 2 }, 0 } },
      .out = { D(0, 0, 0, 0, 1, 1, 1, 1) }, .near = NEAR_EXACT },
    { CORNU_OP_IOTA, { .iota = { CORNU_I64, 2, { 2, 3 }, 2 } },
      .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_IOTA, { .iota = { CORNU_U8, 1, { 257 }, 0 } }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_IOTA, { .iota = { CORNU_I64, 9, { 1 }, 0 } }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_REPLICA_ID, .out = { D(0) } },
};

const OpCases op_cases_source = { "source", rows, sizeof rows / sizeof *rows };
