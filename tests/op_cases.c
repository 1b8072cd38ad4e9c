#include "op_cases/rows.h"

#include "../device/random.h"

static const OpCases *const families[] = {
    &op_cases_source, &op_cases_collective, &op_cases_elementwise, &op_cases_compare,
    &op_cases_shape, &op_cases_reduce, &op_cases_matmul, &op_cases_conv2d,
    &op_cases_pool, &op_cases_batch_norm, &op_cases_softmax, &op_cases_gather,
    &op_cases_scan, &op_cases_recurrent, &op_cases_random, &op_cases_update,
    &op_cases_custom, &op_cases_attention,
};
enum { FAMILIES = sizeof families / sizeof *families };

const OpCase *op_case(int i)
{
    op_cases_custom_make();
    for (int f = 0; f < FAMILIES; i -= families[f++]->count)
        if (i < families[f]->count) return &families[f]->rows[i];
    return NULL;
}

const char *op_case_place(const OpCase *row, int *number)
{
    for (int f = 0; f < FAMILIES; f++)
        for (*number = 0; *number < families[f]->count; ++*number)
            if (&families[f]->rows[*number] == row) return families[f]->name;
    return NULL;
}

int op_case_in_count(const OpCase *row)
{
    int count = cornu_op_input_count(row->id);
    return count < 0 ? row->in_count : count;
}

/* Element i of a drawn operand. 37 shares no factor with the rows' counts of elements, so that
 * i * 37 mod count visits each step of DRAW_APART once. */
static double drawn(const OpCase *row, int operand, int64_t i, int64_t count)
{
    const uint32_t counter[4] = { (uint32_t)i, (uint32_t)operand, (uint32_t)row->id, 0 };
    uint32_t       words[4];
    cornu_philox(1, counter, words);
    double uniform = cornu_uniform(words[0]);
    switch (row->draw[operand]) {
    case DRAW_ANY:      return 4.0 * uniform - 2.0;
    case DRAW_POSITIVE: return 0.5 + 2.0 * uniform;
    case DRAW_APART:    return 4.0 * (((double)(i * 37 % count) + 0.3) / (double)count - 0.5);
    case DRAW_SMALL:    return 0.5 * uniform - 0.25;
    case DRAW_LABELS:   return (double)(i % 3);
    case DRAW_BOOL:     return uniform < 0.5;
    }
    return 0.0;
}

/* Drawn numbers are rounded to f32, so that a device in f32 starts from the same ones. */
void op_case_fill(const OpCase *row, int operand, double *to)
{
    int64_t count = cornu_type_count(row->in[operand]);
    for (int64_t i = 0; i < count; i++)
        to[i] = row->given[operand] ? row->given[operand][i]
                                    : (double)(float)drawn(row, operand, i, count);
}
