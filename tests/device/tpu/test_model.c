/* The performance model of a program against numbers worked out by hand: counts, bytes,
 * collectives; test_products.c has its cycles and tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/tpu/model.h"

#include "../programs.h"
#include "near.h"

static CornuDevice *open_device;

/* ---- Bytes ---- */

/*
 * The batch on the lanes:
 *     u8 (1024, 28, 28, 1)   rows of W, 28 x 32 x 1024 = 917,504; row-major would be 117 million
 *     bf16 (256, 5, 3)       rows of axis 1, 8 x 3 x 256 x 2 = 12,288; of axis 2: 5 x 8 x 256 x 2
 *     bf16 (256, 3, 5)       rows of axis 2, 3 x 8 x 256 x 2 = 12,288
 */
static void tiles_are_padded(void **state)
{
    (void)state;
    assert_int_equal(cornu_tpu_tiled_bytes(cornu_type(CORNU_F32, 128, 10)), 128 * 128 * 4);
    assert_int_equal(cornu_tpu_hbm_bytes(cornu_type(CORNU_F32, 128, 10)), 16 * 128 * 4);
    assert_int_equal(cornu_tpu_hbm_bytes(cornu_type(CORNU_U8, 1024, 28, 28, 1)), 917504);
    assert_int_equal(cornu_tpu_tiled_bytes(cornu_type(CORNU_U8, 1024, 28, 28, 1)), 117440512);
    assert_int_equal(cornu_tpu_hbm_bytes(cornu_type(CORNU_BF16, 256, 5, 3)), 12288);
    assert_int_equal(cornu_tpu_hbm_bytes(cornu_type(CORNU_BF16, 256, 3, 5)), 12288);
    assert_int_equal(cornu_tpu_tiled_bytes(cornu_type(CORNU_BF16, 3, 128)), 8 * 128 * 2);
    assert_int_equal(cornu_tpu_tiled_bytes(cornu_type(CORNU_U8, 3, 128)), 32 * 128);
    assert_int_equal(cornu_tpu_tiled_bytes(cornu_type(CORNU_F32, 5, 9, 129)), 5 * 16 * 256 * 4);
    assert_int_equal(cornu_tpu_tiled_bytes(cornu_type(CORNU_F32, 10)), 128 * 4);
    assert_int_equal(cornu_tpu_tiled_bytes(cornu_scalar(CORNU_F32)), 128 * 4);
}

/* ---- Three layers by hand ---- */

enum { MOST_OPERANDS = 6 };

/* What is modelled of one op. */
static CornuTpuOp op_of(CornuOpId id, const CornuAttributes *attributes, const CornuType *types,
                        int count, int passes)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    in[MOST_OPERANDS];
    for (int i = 0; i < count; i++) in[i] = input(p, types[i]);
    output(p, op(p, id, attributes, in, count), -1);
    CornuTpuModel *model = cornu_tpu_model(p, .passes = passes);
    assert_non_null(model);
    assert_int_equal(model->op_count, 1);
    const CornuTpuOp result = model->ops[0];
    cornu_tpu_model_free(model);
    cornu_program_free(p);
    return result;
}

static CornuTpuOp only_op(CornuOpId id, const CornuAttributes *attributes, CornuType a,
                          CornuType b, int passes)
{
    return op_of(id, attributes, (const CornuType[]){ a, b }, 2, passes);
}

/*
 * (128, 784) by (784, 512) on one 128 x 128 array at 700 MHz, 358 GB/s:
 *     tiles      ceil(784 / 128) ceil(512 / 128) = 7 x 4 = 28
 *     useful     128 x 784 x 512 = 51,380,224
 *     padded     28 x 128 x 128 x 128 = 58,720,256, so 87.5 % at best
 *     cycles     128 + 27 x 128 + 128 + 254 = 3966: 79.1 %; one by one 28 x 510 = 14280: 22.0 %
 *     bytes      x with the batch on the lanes 784 x 128 x 4 = 401,408; weights 784 x 512 x 4 =
 *                1,605,632; y 128 x 512 x 4 = 262,144; together 2,269,184
 *     time       max(3966 / 700 = 5.666, 2,269,184 / 358,000 = 6.338) us: memory rules
 */
static void a_dense_layer(void **state)
{
    (void)state;
    const CornuType x = cornu_type(CORNU_F32, 128, 784), w = cornu_type(CORNU_F32, 784, 512);
    CornuTpuOp      dense = only_op(CORNU_OP_MATMUL, NULL, x, w, 0);
    assert_int_equal(dense.passes, 1);
    assert_int_equal(dense.cycles.folds, 28);
    assert_int_equal(dense.useful_macs, 51380224);
    assert_int_equal(dense.cycles.padded_macs, 58720256);
    assert_true(dense.cycles.overlapped == 3966);
    assert_true(dense.use_padding == 0.875);
    assert_near(dense.use_overlapped, 51380224.0 / (3966.0 * 16384.0), 1e-12);
    assert_near(dense.use_no_overlap, 51380224.0 / (14280.0 * 16384.0), 1e-12);
    assert_int_equal(dense.hbm_bytes, 2269184);
    assert_near(dense.mxu_s, 5.6657e-6, 1e-4);
    assert_near(dense.seconds, 6.3385e-6, 1e-4);
    assert_int_equal(dense.bound, CORNU_TPU_BOUND_HBM);

    /* Highest precision takes six times the cycles, and then the MXU rules. */
    dense = only_op(CORNU_OP_MATMUL, NULL, x, w, 6);
    assert_true(dense.cycles.overlapped == 6 * 3966);
    assert_near(dense.use_overlapped, 51380224.0 / (3966.0 * 16384.0), 1e-12);
    assert_near(dense.seconds, 6 * 5.6657e-6, 1e-4);
    assert_int_equal(dense.bound, CORNU_TPU_BOUND_MXU);

    /* Operands of bfloat16 need no other passes, and half the memory of two of the three. */
    dense = only_op(CORNU_OP_MATMUL, &(CornuAttributes){ .matmul = { .dtype = CORNU_F32 } },
                    cornu_type(CORNU_BF16, 128, 784), cornu_type(CORNU_BF16, 784, 512), 6);
    assert_int_equal(dense.passes, 1);
    assert_int_equal(dense.hbm_bytes, (401408 + 1605632) / 2 + 262144);
}

static const CornuAttributes same3x3 = { .conv2d = { .low = { 1, 1 }, .high = { 1, 1 } } };

/*
 * 32 images of 28 x 28, 3 x 3 from 3 to 64 channels, padding "same":
 *     product    M = 32 x 28 x 28 = 25088, K = 3 x 3 x 3 = 27, N = 64: one tile
 *     useful     25088 x 27 x 64 = 43,352,064 of 25088 x 128 x 128 = 411,041,792: 10.5 %
 *     cycles     128 + 25088 + 254 = 25470
 *     bytes      x with the batch on the lanes and W in rows 28 x 32 x 3 x 128 x 4 = 1,376,256;
 *                filter 9 x 8 x 128 x 4 = 36,864; y with the batch in rows 28 x 28 x 32 x 128 x 4
 *                = 12,845,056; together 14,258,176
 */
static void a_convolution_of_few_channels(void **state)
{
    (void)state;
    const CornuTpuOp conv = only_op(CORNU_OP_CONV2D, &same3x3, cornu_type(CORNU_F32, 32, 28, 28, 3),
                                    cornu_type(CORNU_F32, 3, 3, 3, 64), 0);
    assert_int_equal(conv.product.m, 25088);
    assert_int_equal(conv.product.k, 27);
    assert_int_equal(conv.product.n, 64);
    assert_int_equal(conv.cycles.folds, 1);
    assert_int_equal(conv.useful_macs, 43352064);
    assert_int_equal(conv.cycles.padded_macs, 411041792);
    assert_true(conv.cycles.overlapped == 25470 && conv.cycles.no_overlap == 25470);
    assert_int_equal(conv.hbm_bytes, 14258176);
}

/*
 * The same from 64 to 64 channels:
 *     product    M = 25088, K = 9 x 64 = 576, N = 64: ceil(576 / 128) = 5 tiles
 *     useful     25088 x 576 x 64 = 924,844,032 of 5 x 25088 x 128 x 128 = 2,055,208,960: 45 %
 *     cycles     128 + 5 x 25088 + 254 = 125822
 *     bytes      x and y 12,845,056 each, filter 9 x 64 x 128 x 4 = 294,912: 25,985,024
 * Its gradients:
 *     filter     M = 576, K = 25088, N = 64: 196 tiles, 128 + 196 x 576 + 254 = 113278 cycles
 *     input      M = 25088, K = 9 x 64, N = 64: as forward
 */
static void a_convolution_of_many_channels(void **state)
{
    (void)state;
    const CornuType images = cornu_type(CORNU_F32, 32, 28, 28, 64);
    const CornuType filter = cornu_type(CORNU_F32, 3, 3, 64, 64);
    CornuTpuOp      conv = only_op(CORNU_OP_CONV2D, &same3x3, images, filter, 0);
    assert_int_equal(conv.cycles.folds, 5);
    assert_int_equal(conv.useful_macs, 924844032);
    assert_int_equal(conv.cycles.padded_macs, 2055208960);
    assert_true(conv.cycles.overlapped == 125822 && conv.cycles.no_overlap == 127350);
    assert_int_equal(conv.hbm_bytes, 25985024);
    assert_int_equal(conv.bound, CORNU_TPU_BOUND_MXU);

    CornuAttributes grad = { .conv2d_grad = { .low = { 1, 1 }, .high = { 1, 1 },
                                              .extents = { 3, 3 } } };
    conv = only_op(CORNU_OP_CONV2D_GRAD_FILTER, &grad, images, images, 0);
    assert_int_equal(conv.product.m, 576);
    assert_int_equal(conv.product.k, 25088);
    assert_int_equal(conv.product.n, 64);
    assert_int_equal(conv.useful_macs, 924844032);
    assert_true(conv.cycles.overlapped == 113278);
    grad.conv2d_grad.extents[0] = grad.conv2d_grad.extents[1] = 28;
    conv = only_op(CORNU_OP_CONV2D_GRAD_INPUT, &grad, images, filter, 0);
    assert_int_equal(conv.product.m, 25088);
    assert_int_equal(conv.product.k, 576);
    assert_true(conv.cycles.overlapped == 125822);
}

/* With stride 2 the gradient of the input runs over H W rows, a quarter of which mean something:
 * the op's multiply-accumulates stay those of the forward op. */
static void useful_work_is_what_the_op_means(void **state)
{
    (void)state;
    const CornuAttributes grad = { .conv2d_grad = { .strides = { 2, 2 }, .extents = { 28, 28 } } };
    const CornuTpuOp      conv = only_op(CORNU_OP_CONV2D_GRAD_INPUT, &grad,
                                         cornu_type(CORNU_F32, 8, 14, 14, 128),
                                         cornu_type(CORNU_F32, 2, 2, 128, 128), 0);
    assert_int_equal(conv.product.m, 8 * 28 * 28);
    assert_int_equal(conv.product.k, 4 * 128);
    assert_int_equal(conv.useful_macs, (int64_t)8 * 14 * 14 * 4 * 128 * 128);
    assert_true(conv.use_padding == 0.25);
}

/* ---- Time steps ---- */

/*
 * An LSTM of 512 units over 100 time steps of 16 rows, in bf16 with f32 cells:
 *     products   at each step (16, 512) by (512, 2048): 4 x 16 = 64 tiles
 *     useful     100 x 16 x 512 x 2048 = 1,677,721,600, none of them padding
 *     cycles     100 (128 + 63 x 128 + 16 + 254) = 846,200: 12.1 %; with each tile loaded by itself
 *                100 x 64 (128 + 16 + 254) = 2,547,200
 *     vector     33 for each of 100 x 16 x 512 units: 27,033,600; of the gradient 30: 24,576,000
 *     bytes      z and gates 100 x 16 x 2048 x 2 = 6,553,600 each, U 2,097,152, h0 16,384, c0 and
 *                the last c 32,768 each, h 1,638,400, cells 3,276,800: 20,201,472
 * The gradient's products are (16, 2048) by (2048, 512): 16 x 4 tiles. It reads gates, cells, c0,
 * U, d_h as large as h and d_c as large as c, and writes d_z, d_h0 and d_c0: 20,234,240.
 */
static void a_recurrence_goes_step_by_step(void **state)
{
    (void)state;
    enum { B = 16, T = 100, U = 512 };
    const CornuType wide = cornu_type(CORNU_BF16, B, T, 4 * U), h = cornu_type(CORNU_BF16, B, T, U);
    const CornuType cells = cornu_type(CORNU_F32, B, T, U), c = cornu_type(CORNU_F32, B, U);
    const CornuType kernel = cornu_type(CORNU_BF16, U, 4 * U), h0 = cornu_type(CORNU_BF16, B, U);
    const CornuType forward[] = { wide, kernel, h0, c }, back[] = { wide, cells, c, kernel, h, c };
    CornuTpuOp      lstm = op_of(CORNU_OP_LSTM, NULL, forward, 4, 6);
    for (int backward = 0; backward < 2; backward++) {
        assert_int_equal(lstm.product.count, T);
        assert_int_equal(lstm.product.m, B);
        assert_int_equal(lstm.product.k, backward ? 4 * U : U);
        assert_int_equal(lstm.product.n, backward ? U : 4 * U);
        assert_int_equal(lstm.passes, 1);
        assert_int_equal(lstm.cycles.folds, T * 64);
        assert_int_equal(lstm.useful_macs, 1677721600);
        assert_true(lstm.use_padding == 1.0);
        assert_true(lstm.cycles.overlapped == 846200 && lstm.cycles.no_overlap == 2547200);
        assert_near(lstm.use_overlapped, 1677721600.0 / (846200.0 * 16384.0), 1e-12);
        assert_int_equal(lstm.vector_ops, backward ? 24576000 : 27033600);
        assert_int_equal(lstm.hbm_bytes, backward ? 20234240 : 20201472);
        assert_near(lstm.seconds, 846200.0 / 700e6, 1e-9);
        assert_int_equal(lstm.bound, CORNU_TPU_BOUND_MXU);
        lstm = op_of(CORNU_OP_LSTM_GRAD, NULL, back, 6, 6);
    }
}

/*
 * 2 rows of 128 steps, 4 heads of 64 elements, two of which share one of the keys, in bf16:
 * products of (256, 64) by (64, 128) and of (256, 128) by (128, 64), 2 x 2 of each; in the gradient
 * two of the former, one of the latter and two of (128, 256) by (256, 64). Causal or not, a TPU
 * computes all pairs of steps, 2 x 4 x 128 x 128, with 6 operations for each besides.
 *     bytes      of the gradient: eight times 2 x 128 x 8 x 128 x 2, heads and elements padded to a
 *                tile, and lse 2 x 8 x 128 x 4
 */
static void attention_is_its_products(void **state)
{
    (void)state;
    const CornuAttributes causal = { .attention = { 1, 0 } };
    const CornuType q = cornu_type(CORNU_BF16, 2, 128, 4, 64);
    const CornuType k = cornu_type(CORNU_BF16, 2, 128, 2, 64);
    const CornuType in[] = { q, k, k, q, cornu_type(CORNU_F32, 2, 4, 128), q };
    const int64_t   pairs = 2 * 4 * 128 * 128;
    const CornuTpuOp forward = op_of(CORNU_OP_ATTENTION, &causal, in, 3, 6);
    assert_int_equal(forward.useful_macs, pairs * 64 * 2);
    assert_int_equal(forward.vector_ops, pairs * 6);
    assert_int_equal(forward.product.count, 4);
    assert_int_equal(forward.product.m, 256);
    assert_int_equal(forward.passes, 1);
    assert_int_equal(forward.cycles.folds, 4 + 4);
    const CornuTpuOp back = op_of(CORNU_OP_ATTENTION_GRAD, &causal, in, 6, 6);
    assert_int_equal(back.useful_macs, pairs * 64 * 5);
    assert_int_equal(back.vector_ops, pairs * 6);
    assert_int_equal(back.cycles.folds, 4 + 4 + 4 + 8 + 8);
    assert_int_equal(back.hbm_bytes, 8 * 524288 + 8192);
}

/* Ten steps of h' = tanh(h U + x), (8, 128) by (128, 128): ten products of 390 cycles, of 6 passes,
 * and 2 x 8 x 128 operations at each. Read and written once: h twice and x 8 x 128 x 4 bytes a
 * step, U 128 x 128 x 4. */
static void a_scan_is_its_body_step_by_step(void **state)
{
    (void)state;
    const CornuType h = cornu_type(CORNU_F32, 8, 128), u = cornu_type(CORNU_F32, 128, 128);
    CornuProgram   *body = cornu_program_create();
    CornuValue      in[] = { input(body, h), input(body, h), input(body, u) };
    CornuValue      h_u = op2(body, CORNU_OP_MATMUL, in[0], in[2]);
    output(body, op1(body, CORNU_OP_TANH, op2(body, CORNU_OP_ADD, h_u, in[1])), -1);
    const CornuAttributes scan = { .scan = { .body = body, .carries = 1, .slices = 1, .axis = 1,
                                             .steps = 10 } };
    const CornuTpuOp rnn = op_of(CORNU_OP_SCAN, &scan, (const CornuType[]){
                                     h, cornu_type(CORNU_F32, 8, 10, 128), u }, 3, 6);
    assert_int_equal(rnn.product.count, 10);
    assert_int_equal(rnn.product.m, 8);
    assert_int_equal(rnn.passes, 6);
    assert_int_equal(rnn.useful_macs, 10 * 8 * 128 * 128);
    assert_int_equal(rnn.cycles.folds, 10);
    assert_true(rnn.cycles.overlapped == 6 * 10 * 390);
    assert_near(rnn.use_overlapped, 8.0 / 390.0, 1e-12);
    assert_int_equal(rnn.vector_ops, 10 * 2 * 8 * 128);
    assert_int_equal(rnn.hbm_bytes, 4 * (12 * 8 * 128 + 128 * 128));
    cornu_program_free(body);
}

/*
 * 16 x 100 rows of 2048 in bf16, by their numbers, from a table of 256:
 *     bytes      table 1,048,576, numbers 32 x 128 = 4,096, rows 6,553,600: 7,606,272
 * and the gradient by the table in f32, which adds each of the rows:
 *     bytes      rows 13,107,200, numbers 4,096, table 2,097,152: 15,208,448
 */
static void a_lookup_moves_rows(void **state)
{
    (void)state;
    const CornuType numbers = cornu_type(CORNU_U8, 16, 100);
    CornuTpuOp      lookup = only_op(CORNU_OP_GATHER, NULL, cornu_type(CORNU_BF16, 256, 2048),
                                     numbers, 0);
    assert_int_equal(lookup.product.count, 0);
    assert_int_equal(lookup.vector_ops, 0);
    assert_int_equal(lookup.hbm_bytes, 7606272);
    assert_int_equal(lookup.bound, CORNU_TPU_BOUND_HBM);
    const CornuAttributes grad = { .gather_grad = { .rows = 256, .dtype = CORNU_F32 } };
    lookup = only_op(CORNU_OP_GATHER_GRAD, &grad, cornu_type(CORNU_F32, 16, 100, 2048), numbers, 0);
    assert_int_equal(lookup.vector_ops, 16 * 100 * 2048);
    assert_int_equal(lookup.hbm_bytes, 15208448);
    assert_int_equal(lookup.bound, CORNU_TPU_BOUND_HBM);
}

/* ---- Memory and links ---- */

/* Compiled for the tpu device of so many shards; the program may go. */
static CornuExecutable *compiled(CornuProgram *p, const char *device, int shards)
{
    open_device = cornu_device_open(device, .shards = shards, .threads = 1);
    assert_non_null(open_device);
    CornuExecutable *executable = cornu_device_compile(open_device, p);
    if (!executable) fail_msg("%s", cornu_error_message());
    cornu_program_free(p);
    return executable;
}

static const CornuTpuOp *op_called(const CornuTpuModel *model, const CornuExecutable *executable,
                                   const char *name)
{
    int                        count;
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    assert_int_equal(model->op_count, count);
    for (int i = 0; i < count; i++)
        if (!strcmp(steps[i].name, name)) return &model->ops[i];
    fail_msg("no step is called %s", name);
    return NULL;
}

/*
 * y = relu(x w + b) and its column sums, f32. Compiled, bias and relu belong to the product's
 * step. Bytes of (128, 128): 65,536; of a vector of 128: 512.
 *     matmul+bias+relu   x, w, b and y              197,120
 *     reduce_sum         y and its sums              66,048
 * The product is one tile: 128 + 128 + 254 = 510 cycles, six times for f32 at highest precision.
 * 128 x 128 additions and as many maxima, and 128 x 128 additions of the sum, 2048 a cycle.
 * As a program of single ops the broadcast, the sum and relu's operand are in memory, too.
 */
static void fused_ops_meet_on_the_chip(void **state)
{
    (void)state;
    CornuProgram   *p = cornu_program_create();
    const CornuType square = cornu_type(CORNU_F32, 128, 128);
    CornuValue      x = input(p, square), w = input(p, square);
    CornuValue      b = input(p, cornu_type(CORNU_F32, 128));
    CornuValue      product = op2(p, CORNU_OP_MATMUL, x, w);
    CornuValue      sum = op2(p, CORNU_OP_ADD, product, broadcast(p, b, square.shape));
    CornuValue      y = op1(p, CORNU_OP_RELU, sum);
    output(p, reduce(p, CORNU_OP_REDUCE_SUM, y, 1), -1);
    output(p, y, -1);
    CornuTpuModel *single = cornu_tpu_model(p, .shards = 1);
    assert_non_null(single);
    assert_int_equal(single->hbm_bytes, 3 * 65536 + (512 + 65536) + 3 * 65536 + 2 * 65536 + 66048);
    cornu_tpu_model_free(single);

    CornuExecutable *executable = compiled(p, "tpu", 1);
    CornuTpuModel   *model = cornu_tpu_model(.executable = executable, .passes = 6);
    assert_non_null(model);
    const CornuTpuOp *dense = op_called(model, executable, "matmul+bias+relu");
    assert_int_equal(dense->hbm_bytes, 197120);
    assert_int_equal(dense->vector_ops, 2 * 16384);
    assert_near(dense->vector_s, 16.0 / 700e6, 1e-12);
    assert_int_equal(dense->product.k, 128);
    assert_int_equal(dense->passes, 6);
    assert_true(dense->cycles.overlapped == 6 * 510);
    const CornuTpuOp *column = op_called(model, executable, "reduce_sum");
    assert_int_equal(column->hbm_bytes, 66048);
    assert_int_equal(column->vector_ops, 16384);
    assert_int_equal(column->product.count, 0);
    assert_int_equal(model->hbm_bytes, 197120 + 66048);
    assert_true(model->device_s == dense->seconds + column->seconds);
    cornu_tpu_model_free(model);
    cornu_device_close(open_device);
}

/*
 * A batch norm of 32 images 14 x 14 of 8 channels, f32: its values 32 x 196 x 8 = 50,176. With the
 * batch on the lanes they take 14 x 14 x 8 x 128 x 4 = 802,816 bytes; a vector of the channels
 * takes 512, the i64 count of valid rows 1024. Read are x, scale, offset and count, written y, mean
 * and variance: 2 x 802,816 + 4 x 512 + 1024 = 1,608,704 bytes, 4.494 us at 358 GB/s. The vector
 * unit has 8 operations for each value, 2048 in a cycle: 0.28 us. So memory bounds it.
 */
static void a_batch_norm(void **state)
{
    (void)state;
    CornuProgram    *p = cornu_program_create();
    const CornuType  c = cornu_type(CORNU_F32, 8);
    const CornuValue in[] = { input(p, cornu_type(CORNU_F32, 32, 14, 14, 8)), input(p, c),
                              input(p, c), input(p, cornu_scalar(CORNU_I64)) };
    const CornuAttributes epsilon = { .epsilon = { 1e-3 } };
    CornuValue            out[3];
    assert_int_equal(cornu_program_record(p, CORNU_OP_BATCH_NORM, &epsilon, in, 4, out), CORNU_OK);
    for (int i = 0; i < 3; i++) output(p, out[i], -1);
    CornuExecutable  *executable = compiled(p, "tpu", 1);
    CornuTpuModel    *model = cornu_tpu_model(.executable = executable);
    assert_non_null(model);
    const CornuTpuOp *norm = op_called(model, executable, "batch_norm");
    assert_int_equal(norm->hbm_bytes, 2 * 802816 + 4 * 512 + 1024);
    assert_near(norm->seconds, 4.4936e-6, 1e-4);
    assert_int_equal(norm->vector_ops, 8 * 50176);
    assert_near(norm->vector_s, 0.28e-6, 1e-12);
    assert_int_equal(norm->bound, CORNU_TPU_BOUND_HBM);
    assert_int_equal(norm->useful_macs, 0);
    cornu_tpu_model_free(model);
    cornu_device_close(open_device);
}

/*
 * Two sums over 8 shards, 4 x 1000 and 8 x 4500 bytes, one after the other: together 40,000
 * bytes, on a v2-8
 *     in the chip      3 x 40,000 / 716 GB/s            = 0.1676 us
 *     ring of 4        2 x 40,000 / 124 GB/s x 3 / 4    = 0.4839 us, and 4 hops of 1 us
 * of which each has the part of its bytes and the first the hops. 8 shards are fed 40,000 bytes
 * each: 320,000 bytes over the PCIe of 4 chips, 15 GB/s each, 5.33 us.
 */
static void collectives_and_infeed_follow_from_the_program(void **state)
{
    (void)state;
    CornuProgram *p = cornu_program_create();
    CornuValue    small, large;
    cornu_program_shard_input(p, cornu_type(CORNU_F32, 1000), &small);
    cornu_program_shard_input(p, cornu_type(CORNU_F64, 4500), &large);
    CornuValue kept;                     /* a variable of each shard is not fed */
    cornu_program_shard_input(p, cornu_type(CORNU_F32, 50000), &kept);
    output(p, op1(p, CORNU_OP_ALL_REDUCE, small), -1);
    output(p, op1(p, CORNU_OP_ALL_REDUCE, large), -1);
    output(p, op1(p, CORNU_OP_RELU, kept), 2);
    CornuExecutable *executable = compiled(p, "tpu", 8);
    CornuTpuModel   *model = cornu_tpu_model(.executable = executable);
    assert_non_null(model);
    assert_int_equal(model->shards, 8);
    assert_int_equal(model->link_bytes, 40000);
    assert_near(model->links_s, 4.6515e-6, 1e-4);
    double least = 1.0, most = 0.0;
    for (int i = 0; i < model->op_count; i++) {
        const CornuTpuOp *op = &model->ops[i];
        if (op->link_bytes == 0) continue;
        assert_int_equal(op->bound, CORNU_TPU_BOUND_LINKS);
        least = fmin(least, op->links_s);
        most = fmax(most, op->links_s);
    }
    assert_true(least < 0.7e-6 && most > 4e-6);
    assert_int_equal(model->infeed_bytes, 8 * 40000);
    assert_near(model->infeed_s, 320000.0 / 60e9, 1e-12);
    cornu_tpu_model_free(model);
    cornu_device_close(open_device);
}

/*
 * 1000 numbers of each of 8 shards, 4000 bytes, are summed, each shard having 500 bytes of the sum,
 * and these are gathered. Each is half an all_reduce of 4000 bytes, on a v2-8
 *     in the chip      3 x 4000 / 716 GB/s              = 0.01676 us
 *     ring of 4        2 x 4000 / 124 GB/s x 3 / 4      = 0.04839 us, and 4 hops of 1 us
 * whichever of their ends is the whole.
 */
static void scatter_and_gather_are_halves(void **state)
{
    (void)state;
    CornuProgram         *p = cornu_program_create();
    const CornuAttributes all = { .shards = { .size = 8 } };
    CornuValue            x;
    cornu_program_shard_input(p, cornu_type(CORNU_F32, 1000), &x);
    x = op(p, CORNU_OP_REDUCE_SCATTER, &all, &x, 1);
    x = op1(p, CORNU_OP_RELU, x);
    output(p, op(p, CORNU_OP_ALL_GATHER, &all, &x, 1), -1);
    CornuExecutable *executable = compiled(p, "tpu", 8);
    CornuTpuModel   *model = cornu_tpu_model(.executable = executable);
    assert_non_null(model);
    for (int i = 0; i < 2; i++) {
        const CornuTpuOp *half = op_called(model, executable, i ? "all_gather" : "reduce_scatter");
        assert_int_equal(half->link_bytes, 2000);
        assert_near(half->links_s, 4.06515e-6 / 2, 1e-5);
    }
    assert_int_equal(model->link_bytes, 4000);
    cornu_tpu_model_free(model);
    cornu_device_close(open_device);
}

/*
 * 93,322 weights, 373,288 bytes, on a v2-8:
 *     in the chip      3 x 373,288 / 716 GB/s           = 1.564 us
 *     ring of 4        2 x 373,288 / 124 GB/s x 3 / 4   = 4.516 us, and 4 hops of 1 us
 */
static void gradients_meet_on_a_ring(void **state)
{
    (void)state;
    const CornuTpuProfile *v2 = cornu_tpu_profile("v2-8"), *v5e = cornu_tpu_profile("v5e-8");
    assert_near(cornu_tpu_all_reduce_s(v2, 8, 373288), 10.080e-6, 1e-4);
    assert_near(cornu_tpu_all_reduce_s(v2, 2, 373288), 1.564e-6, 1e-3);
    assert_true(cornu_tpu_all_reduce_s(v2, 1, 373288) == 0.0);
    /* Two chips do not form a ring: 2 V / B and two hops. */
    assert_near(cornu_tpu_all_reduce_s(v5e, 2, 90000), 2e-6 + 2e-6, 1e-9);
    assert_near(cornu_tpu_all_reduce_s(v5e, 8, 90000), 2e-6 * 7 / 8 + 8e-6, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_padded),
        cmocka_unit_test(a_dense_layer),
        cmocka_unit_test(a_convolution_of_few_channels),
        cmocka_unit_test(a_convolution_of_many_channels),
        cmocka_unit_test(useful_work_is_what_the_op_means),
        cmocka_unit_test(a_recurrence_goes_step_by_step),
        cmocka_unit_test(attention_is_its_products),
        cmocka_unit_test(a_scan_is_its_body_step_by_step),
        cmocka_unit_test(a_lookup_moves_rows),
        cmocka_unit_test(fused_ops_meet_on_the_chip),
        cmocka_unit_test(a_batch_norm),
        cmocka_unit_test(collectives_and_infeed_follow_from_the_program),
        cmocka_unit_test(scatter_and_gather_are_halves),
        cmocka_unit_test(gradients_meet_on_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
