/* Loops over time: carry, slices, constant. */
#include "rows.h"

/* A scan's step: the next carry is carry * constant + slice, which is stacked, as is the carry
 * itself. And one whose carry changes its type. */
#define PAIR { CORNU_F32, { 1, { 2 } } }
static CornuProgramValue step_values[] = {
    { .type = PAIR, .op = -1, .index = 0 }, { .type = PAIR, .op = -1, .index = 1 },
    { .type = PAIR, .op = -1, .index = 2 }, { .type = PAIR, .op = 0 }, { .type = PAIR, .op = 1 },
    { .type = { CORNU_F32, { 0 } }, .op = 2 },
};
static CornuProgramOp step_ops[] = {
    { .id = CORNU_OP_MULTIPLY, .in_first = 0, .in_count = 2, .out_first = 3, .out_count = 1,
      .scope = "" },
    { .id = CORNU_OP_ADD, .in_first = 2, .in_count = 2, .out_first = 4, .out_count = 1,
      .scope = "" },
    { .id = CORNU_OP_REDUCE_SUM, { .reduce = { 1, 0, 0 } }, .in_first = 4, .in_count = 1,
      .out_first = 5, .out_count = 1, .scope = "" },
};
static CornuValue         step_operands[] = { 0, 2, 3, 1, 4 }, step_inputs[] = { 0, 1, 2 };
static CornuProgramOutput step_outputs[] = { { 4, -1 }, { 4, -1 }, { 0, -1 } };
static CornuProgramOutput other_outputs[] = { { 5, -1 } };
static const CornuProgram scan_step = {
    .values = step_values, .value_count = 6, .ops = step_ops, .op_count = 3,
    .operands = step_operands, .operand_count = 5, .inputs = step_inputs, .input_count = 3,
    .outputs = step_outputs, .output_count = 3, .scope = "",
    .rules = cornu__op_table,
};
static const CornuProgram other_step = {
    .values = step_values, .value_count = 6, .ops = step_ops, .op_count = 3,
    .operands = step_operands, .operand_count = 5, .inputs = step_inputs, .input_count = 3,
    .outputs = other_outputs, .output_count = 1, .scope = "",
    .rules = cornu__op_table,
};

static const OpCase rows[] = {
    { CORNU_OP_SCAN, { .scan = { &scan_step, 1, 1, 0, 3, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 2, 3, 2), T(F32, 1, 2) },
      .given = { D(1, 2), D(1, 1, 2, 0, 0, 3), D(2, 0.5) },
      .out = { D(16, 3.5), D(3, 2, 8, 1, 16, 3.5), D(1, 2, 3, 2, 8, 1) }, .differentiate = 7 },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 1, 1, 1, 3, 1 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 2, 2, 3), T(F32, 1, 2) },
      .given = { D(1, 2), D(0, 2, 1, 3, 0, 1), D(2, 0.5) },
      .out = { D(16, 3.5), D(16, 8, 3, 3.5, 1, 2), D(8, 3, 1, 1, 2, 2) }, .differentiate = 7 },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 2, 0, 0, 3, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 1, 2), T(F32, 1, 2) } },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 1, 1, 0, 3, 0 } }, .in_count = 2,
      .in = { T(F32, 1, 2), T(F32, 2, 3, 2) }, .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 1, 1, 0, 4, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 2, 3, 2), T(F32, 1, 2) }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 1, 1, 2, 3, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 2, 3, 2), T(F32, 1, 2) }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 1, 1, 0, 0, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 2, 0, 2), T(F32, 1, 2) }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 1, 1, 0, 3, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 2, 3, 2), T(BF16, 1, 2) }, .refused = CORNU_ERR_DTYPE },
    { CORNU_OP_SCAN, { .scan = { &scan_step, 4, 0, 0, 3, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 1, 2), T(F32, 1, 2) }, .refused = CORNU_ERR_ARGUMENT },
    { CORNU_OP_SCAN, { .scan = { &other_step, 1, 1, 0, 3, 0 } }, .in_count = 3,
      .in = { T(F32, 1, 2), T(F32, 2, 3, 2), T(F32, 1, 2) }, .refused = CORNU_ERR_SHAPE },
    { CORNU_OP_SCAN, .in_count = 1, .in = { T(F32, 1, 2) }, .refused = CORNU_ERR_ARGUMENT },
};

const OpCases op_cases_scan = { "scan", rows, sizeof rows / sizeof *rows };
