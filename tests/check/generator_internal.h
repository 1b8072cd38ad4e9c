/* What the parts of the generator of random programs share. */
#ifndef CORNU_TESTS_CHECK_GENERATOR_INTERNAL_H
#define CORNU_TESTS_CHECK_GENERATOR_INTERNAL_H

#include "bounds.h"
#include "generator.h"

enum { MOST_ELEMENTS = 5000, MOST_INPUTS = 14, MOST_VALUES = 160, MOST_SHARDS = 40 };

static const int64_t MOST_FLOPS = 1000000;

typedef enum { ANY, POSITIVE, SMALL, LABELS, VARIED } Numbers;

typedef struct {
    Trial   *c;
    uint64_t state;
    Bounds   bounds;
} Generator;

/* 64 random bits (generator.c). */
uint64_t gen_bits(uint64_t *state);

static inline int64_t draw(Generator *g, int64_t count) { return pick(&g->state, count); }
static inline bool    chance(Generator *g, int percent) { return draw(g, 100) < percent; }

/* ---- Recording, and operands (generator_values.c) ----
 *
 * What gives a value gives CORNU_NO_VALUE where its results could not be compared, or where it is
 * given that. */

CornuType gen_type_of(const Generator *g, CornuValue v);
bool      gen_usable(const Generator *g, CornuValue v);

/* Record an op; the first of its outputs. */
CornuValue gen_emit_all(Generator *g, CornuOpId id, const CornuAttributes *attributes,
                        const CornuValue *in, int in_count, CornuValue *out);
CornuValue gen_emit(Generator *g, CornuOpId id, const CornuAttributes *attributes,
                    const CornuValue *in, int in_count);
CornuValue gen_emit1(Generator *g, CornuOpId id, CornuValue x);
CornuValue gen_emit2(Generator *g, CornuOpId id, CornuValue x, CornuValue y);
CornuValue gen_shaped(Generator *g, CornuOpId id, CornuValue x, CornuShape shape);
CornuValue gen_scalar(Generator *g, CornuDtype dtype, double value);

/* New inputs; of a value of any kind, one that is there already or new. */
CornuValue gen_fresh_for(Generator *g, CornuType type, Numbers numbers, int64_t labels,
                         bool varies);
CornuValue gen_fresh(Generator *g, CornuType type, Numbers numbers, int64_t labels);
CornuValue gen_any_value(Generator *g, int dtype);
CornuValue gen_any_float(Generator *g);
CornuValue gen_of_rank(Generator *g, int rank);
CornuValue gen_want(Generator *g, CornuType type, Numbers numbers);
CornuValue gen_labelled(Generator *g, CornuShape shape, int64_t labels);
CornuDtype gen_a_float(Generator *g);
CornuShape gen_a_shape(Generator *g, int rank);
int64_t    gen_extent(Generator *g);

/* x as this type: converted, repeated, cut, padded or reshaped. */
CornuValue gen_fit(Generator *g, CornuValue x, CornuType type);

/* ---- Ops (generator_ops.c) ---- */

/* Records such an op. */
void       gen_op(Generator *g, CornuOpId id);
CornuValue gen_make_matmul(Generator *g, CornuOpId id);
CornuValue gen_make_conv2d(Generator *g, CornuOpId id);

/* ---- Layers (generator_layers.c) ---- */

/* The first of a hundred kinds stand for what layers record; false for the others. */
bool       gen_layer(Generator *g, int64_t kind);
CornuValue gen_make_wide_layer(Generator *g);
CornuValue gen_make_lookup(Generator *g);

#endif
