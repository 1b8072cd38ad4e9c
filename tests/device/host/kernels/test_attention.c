/*
 * attention and its gradient against the reference kernels, which compute in double: one and
 * several blocks of queries and keys, with ragged ends; causal, windows, masks broadcast along any
 * axes, steps that attend to none; heads that share one of the keys; the same bits with 1, 2 and 3
 * threads; with each instruction set that this processor has.
 *
 * In bf16 weights and their gradients are rounded before they are multiplied, each by 2^-8 of
 * itself at most.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../device/ops/attention.h"
#include "../../isas.h"
#include "../../numbers.h"
#include "kernel_case.h"

enum { GRAD_OPERANDS = 6 };

typedef struct {
    int64_t B, T, S, N, G, H, V;
    bool    causal, masked;
    int64_t window;
    int     broadcast;   /* bit i: the mask has extent 1 along axis i */
} Shape;

static int64_t pick(const int64_t *from, int count) { return from[between(0, count - 1)]; }

static Shape random_shape(void)
{
    static const int64_t steps[] = { 2, 5, 16, 31, 33, 64, 100, 127, 129, 150, 260 };
    static const int64_t sizes[] = { 1, 3, 8, 16, 17, 32, 33, 64 };
    Shape s = { .B = between(1, 2), .T = pick(steps, 11), .S = pick(steps, 11),
                .G = between(1, 3), .H = pick(sizes, 8), .V = pick(sizes, 8) };
    s.N = s.G * between(1, 2);
    s.causal = between(0, 1);
    s.window = between(0, 3) ? 0 : between(2, 70);
    s.masked = between(0, 2) == 0;
    s.broadcast = (int)between(0, 15);
    if (s.window && s.T - s.window >= s.S) s.window = s.T;
    return s;
}

/* Most steps are attended to; sometimes a query's row of the mask is false throughout. */
static void add_mask(Case *c, const Shape *s)
{
    CornuType type = cornu_type(CORNU_BOOL, s->B, s->N, s->T, s->S);
    for (int axis = 0; axis < 4; axis++)
        if (s->broadcast >> axis & 1) type.shape.extent[axis] = 1;
    case_add(c, type);
    const int64_t S = type.shape.extent[3], rows = cornu_type_count(type) / S;
    uint8_t      *mask = c->in[c->in_count - 1];
    for (int64_t r = 0; r < rows; r++) {
        const bool none = between(0, 9) == 0;
        for (int64_t k = 0; k < S; k++) mask[r * S + k] = !none && between(0, 3) > 0;
    }
}

static Case case_of(const Shape *s, CornuOpId id)
{
    Case c = { .id = id, .attributes.attention = { s->causal, s->window } };
    c.terms = operands == CORNU_BF16 ? 0x1p26 : (double)(s->T + s->S + s->H + s->V);
    case_add(&c, cornu_type(operands, s->B, s->T, s->N, s->H));
    case_add(&c, cornu_type(operands, s->B, s->S, s->G, s->H));
    case_add(&c, cornu_type(operands, s->B, s->S, s->G, s->V));
    return c;
}

/* The results of `forward` as operands of its gradient, rounded as they are stored. */
static void add_results(Case *c, const Case *forward)
{
    for (int i = 0; i < 2; i++) {
        case_add(c, forward->out_type[i]);
        for (int64_t k = 0; k < cornu_type_count(forward->out_type[i]); k++)
            cornu_array_set(case_operand(c, c->in_count - 1), k, forward->expected[i][k]);
    }
}

static void check_shape(const Shape *s)
{
    Case forward = case_of(s, CORNU_OP_ATTENTION);
    if (s->masked) add_mask(&forward, s);
    assert_true(case_expect(&forward));
    case_check(&forward);
    Case backward = case_of(s, CORNU_OP_ATTENTION_GRAD);
    for (int i = 0; i < 3; i++)
        memcpy(backward.in[i], forward.in[i], cornu_type_bytes(forward.in_type[i]));
    add_results(&backward, &forward);
    case_add(&backward, forward.out_type[0]);
    if (s->masked) {
        case_add(&backward, forward.in_type[3]);
        memcpy(backward.in[GRAD_OPERANDS], forward.in[3], cornu_type_bytes(forward.in_type[3]));
    }
    assert_true(case_expect(&backward));
    case_check(&backward);
    case_free(&backward);
    case_free(&forward);
}

/* One query with a mask, as in a step of a generator. */
static void test_one_query(void **state)
{
    (void)state;
    numbers_begin();
    for (int i = 0; i < 40; i++) {
        Shape s = random_shape();
        s.T = 1;
        s.masked = true;
        s.causal = false;
        s.window = 0;
        check_shape(&s);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    numbers_begin();
    for (int i = 0; i < 60; i++) {
        const Shape s = random_shape();
        check_shape(&s);
    }
}

/* Each of what a kernel has to skip or to keep, in more than one block. */
static void test_blocks(void **state)
{
    (void)state;
    static const Shape shapes[] = {
        { 1, 257, 257, 2, 2, 32, 32, .causal = true },
        { 1, 520, 530, 1, 1, 16, 16, .causal = true },
        { 1, 257, 300, 2, 1, 16, 48, .causal = true, .window = 40 },
        { 1, 200, 257, 2, 2, 32, 32, .window = 3 },
        { 1, 300, 130, 1, 1, 64, 16, .window = 0 },
        { 1, 150, 150, 4, 2, 8, 8, .causal = true, .masked = true, .broadcast = 3 },
        { 2, 140, 260, 2, 2, 16, 16, .masked = true, .broadcast = 6 },
        { 2, 140, 260, 2, 2, 16, 16, .causal = true, .masked = true, .broadcast = 14 },
    };
    numbers_begin();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_shape(&shapes[i]);
}

/* The kernels leave to others what they do not compute. */
static void test_refused(void **state)
{
    (void)state;
    const Shape far = { 1, 9, 4, 1, 1, 8, 8, .window = 3 };
    Case        c = case_of(&far, CORNU_OP_ATTENTION);
    assert_true(case_expect(&c));
    assert_null(case_kernel(&c));
    case_free(&c);
}

static int with_isa(const char *name, CornuIsa isa, CornuDtype dtype, bool bf16)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_one_query),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_refused),
    };
    operands = dtype;
    tested_multiplier = (CornuMultiplier){ .bf16 = bf16 };
    return isa_run_group(name, isa, tests, sizeof tests / sizeof *tests);
}

int main(void)
{
    int failed = 0;
    for (int isa = 0; isa < CORNU_ISA_COUNT; isa++) {
        if (isa < CORNU_F32_ISA_COUNT) failed += with_isa("f32", (CornuIsa)isa, CORNU_F32, false);
        failed += with_isa("bf16", (CornuIsa)isa, CORNU_BF16, true);
    }
    return failed;
}
