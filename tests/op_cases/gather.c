/* Lookup. */
#include "rows.h"

static const OpCase rows[] = {
    { CORNU_OP_GATHER, .in = { T(F32, 2, 3, 2), T(I32, 2, 2, 2) },
      .given = { D(1, 2, 3, 4, 5, 6), D(2, 0, 2, 1) }, .out = { D(5, 6, 1, 2, 5, 6, 3, 4) },
      .near = NEAR_EXACT, .differentiate = 1 },
    { CORNU_OP_GATHER, .in = { T(F32, 2, 3, 200), T(U8, 1, 40) }, .draw = { DRAW_ANY, DRAW_LABELS },
      .near = NEAR_EXACT },
    { CORNU_OP_GATHER, .in = { T(I64, 2, 3, 1), T(I64, 0, 0) }, .given = { D(7, 8, 9), D(1) },
      .out = { D(8) } },
    { CORNU_OP_GATHER, .in = { T(F32, 2, 3, 2), T(I64, 1, 4) }, .given = { [1] = D(0, 2, 3, 4) },
      .fault = "gather: index 3 in row 2, expected 0 to 2" },
    { CORNU_OP_GATHER, .in = { T(F32, 2, 3, 2), T(I32, 1, 2) }, .given = { [1] = D(0, -1) },
      .fault = "gather: index -1 in row 1, expected 0 to 2" },
    { CORNU_OP_GATHER, .in = { T(F32, 1, 3), T(I32, 1, 2) }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_GATHER, .in = { T(F32, 2, 3, 2), T(F32, 1, 2) }, .refused = CORNU_ERR_DTYPE },
    { CORNU_OP_GATHER, .in = { T(F32, 2, 3, 2), T(I32, 8, 1, 1, 1, 1, 1, 1, 1, 1) },
      .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_GATHER_GRAD, { .gather_grad = { 3, CORNU_F32 } },
      .in = { T(F32, 3, 2, 2, 2), T(I32, 2, 2, 2) },
      .given = { D(1, 2, 3, 4, 5, 6, 7, 8), D(2, 0, 2, 1) }, .out = { D(3, 4, 7, 8, 6, 8) },
      .differentiate = 1 },
    { CORNU_OP_GATHER_GRAD, { .gather_grad = { 4, CORNU_F32 } },
      .in = { T(F32, 3, 5, 9, 300), T(U8, 2, 5, 9) }, .draw = { DRAW_ANY, DRAW_LABELS },
      .near = NEAR_SUMMED },
    { CORNU_OP_GATHER_GRAD, { .gather_grad = { 3, CORNU_F32 } },
      .in = { T(F32, 2, 2, 2), T(I32, 1, 2) }, .given = { [1] = D(0, 3) },
      .fault = "gather_grad: index 3 in row 1, expected 0 to 2" },
    { CORNU_OP_GATHER_GRAD, { .gather_grad = { 3, CORNU_F32 } },
      .in = { T(F32, 2, 2, 2), T(I32, 1, 3) }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_GATHER_GRAD, { .gather_grad = { -1, CORNU_F32 } },
      .in = { T(F32, 2, 2, 2), T(I32, 1, 2) }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_GATHER_GRAD, { .gather_grad = { 3, CORNU_I32 } },
      .in = { T(F32, 2, 2, 2), T(I32, 1, 2) }, .refused = CORNU_ERR_DTYPE },
};

const OpCases op_cases_gather = { "gather", rows, sizeof rows / sizeof *rows };
