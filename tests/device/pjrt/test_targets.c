/* The text of a program for each kind of target: what GPUs, precisions and determinism change. No
 * plugin is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cornu/device/pjrt/emit/emit.h>

#include "../../expect.h"
#include "../programs.h"

static const CornuTarget plain = { .shards = 1 };

/* Frees the program. */
static void expect_text(CornuProgram *program, CornuTarget target, const char *wanted,
                        const char *unwanted)
{
    CornuModule module;
    expect_ok(cornu__module_emit(&module, program, target, NULL));
    if (!strstr(module.text, wanted)) fail_msg("no %s in: %s", wanted, module.text);
    if (strstr(module.text, unwanted)) fail_msg("%s in: %s", unwanted, module.text);
    cornu__module_free(&module);
    cornu_program_free(program);
}

/* ---- Products ---- */

/* Filters (3, 3, 4, 5), or their gradient. */
static CornuProgram *convolution(bool is_gradient, CornuDtype dtype, CornuDtype result)
{
    CornuProgram   *p = cornu_program_create();
    CornuAttributes a = { .conv2d = { .dtype = result } };
    CornuValue      in[2] = { input(p, cornu_type(dtype, 2, 8, 8, 4)) };
    if (is_gradient)
        a = (CornuAttributes){ .conv2d_grad = { .dtype = result, .extents = { 3, 3 } } };
    in[1] = input(p, is_gradient ? cornu_type(dtype, 2, 6, 6, 5) : cornu_type(dtype, 3, 3, 4, 5));
    output(p, op(p, is_gradient ? CORNU_OP_CONV2D_GRAD_FILTER : CORNU_OP_CONV2D, &a, in, 2), -1);
    return p;
}

static void convolutions_have_results_of_the_target(void **state)
{
    (void)state;
    static const char y32[] = " -> tensor<2x6x6x5xf32>", y16[] = " -> tensor<2x6x6x5xbf16>";
    static const char d32[] = " -> tensor<3x3x4x5xf32>", d16[] = " -> tensor<3x3x4x5xbf16>";
    const CornuTarget gpu = { .shards = 1, .narrow_convolutions = true };
    const CornuTarget cpu = { .shards = 1, .widens_products = true };
    expect_text(convolution(false, CORNU_BF16, CORNU_BF16), gpu, y16, y32);
    expect_text(convolution(true, CORNU_BF16, CORNU_F32), gpu, d16, "tensor<2x8x8x4xf32>");
    expect_text(convolution(false, CORNU_F32, CORNU_F32), gpu, y32, "bf16");
    expect_text(convolution(true, CORNU_BF16, CORNU_F32), plain, d32, d16);
    expect_text(convolution(false, CORNU_BF16, CORNU_BF16), cpu,
                "(tensor<2x8x8x4xf32>, tensor<3x3x4x5xf32>) -> tensor<2x6x6x5xf32>",
                "(tensor<2x8x8x4xbf16>, tensor<3x3x4x5xbf16>)");
}

static void products_have_the_precision_of_the_target(void **state)
{
    (void)state;
    static const char *const names[] = { "HIGHEST", "HIGH", "DEFAULT" };
    for (int i = 0; i < 3; i++) {
        const CornuTarget target = { .shards = 1, .precision = (CornuPrecision)i };
        char              wanted[100];
        snprintf(wanted, sizeof wanted, "[#stablehlo<precision %s>, #stablehlo<precision %s>]",
                 names[i], names[i]);
        CornuProgram   *p = cornu_program_create();
        CornuValue      x = input(p, cornu_type(CORNU_F32, 4, 4));
        CornuAttributes a = { .matmul = { .dtype = CORNU_F32 } };
        output(p, op(p, CORNU_OP_MATMUL, &a, (CornuValue[]){ x, x }, 2), -1);
        expect_text(p, target, wanted, "scatter");
        expect_text(convolution(false, CORNU_F32, CORNU_F32), target, wanted, "scatter");
    }
}

/* ---- Sums in any order ---- */

static CornuProgram *lookup_gradient(int64_t indices, int64_t rows)
{
    CornuProgram   *p = cornu_program_create();
    CornuAttributes a = { .gather_grad = { .rows = rows } };
    CornuValue      in[2] = { input(p, cornu_type(CORNU_F32, indices, 4, 2)),
                              input(p, cornu_type(CORNU_I32, indices, 4)) };
    output(p, op(p, CORNU_OP_GATHER_GRAD, &a, in, 2), -1);
    return p;
}

/* The product takes memory: indices by rows. */
static void a_deterministic_target_scatters_where_products_are_large(void **state)
{
    (void)state;
    static const char scatter[] = "\"stablehlo.scatter\"", product[] = "\"stablehlo.dot_general\"";
    const CornuTarget deterministic = { .shards = 1, .deterministic = true,
                                        .precision = CORNU_PRECISION_DEFAULT };
    expect_text(lookup_gradient(1 << 13, 1 << 12), deterministic, product, scatter);
    expect_text(lookup_gradient(6, 7), deterministic, "precision HIGHEST", "precision DEFAULT");
    expect_text(lookup_gradient(1 << 13, (1 << 12) + 1), deterministic, scatter, product);
    expect_text(lookup_gradient(6, 7), plain, scatter, product);
    expect_text(lookup_gradient(0, 7), deterministic, product, scatter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_have_results_of_the_target),
        cmocka_unit_test(products_have_the_precision_of_the_target),
        cmocka_unit_test(a_deterministic_target_scatters_where_products_are_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
