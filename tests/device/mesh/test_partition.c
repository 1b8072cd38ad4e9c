/* Programs partitioned over a mesh compute what they compute on the shards that share the batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/device.h"
#include "../../../device/mesh/partition.h"
#include "../../../tensor/graph_internal.h"
#include "../../../tensor/ops.h"

enum { ROWS = 4, DATA = 2, MOST = 16, LARGEST = 1 << 14, CLASSES = 12, TIMES = 5 };

/* What every shard is fed: whole inputs, and of each input that varies one for each data shard. */
typedef struct {
    CornuProgram *program;
    double       *in[MOST], *out[MOST];   /* of outputs the whole, or of each data shard */
} Recorded;

static int64_t count_of(CornuType type) { return cornu_type_count(type); }

static double number(int i, int64_t k) { return sin(1.7 * (double)k + (double)i) * 0.5; }

static void fill(Recorded *r)
{
    for (int i = 0; i < r->program->input_count; i++) {
        const CornuProgramValue *value = &r->program->values[r->program->inputs[i]];
        const int64_t            n = count_of(value->type) * (value->varies ? DATA : 1);
        r->in[i] = malloc((size_t)n * sizeof(double));
        const bool               counts = !cornu_dtype_is_float(value->type.dtype);
        for (int64_t k = 0; k < n; k++)
            r->in[i][k] = counts ? (double)((7 * k + i) % CLASSES) : number(i, k);
    }
}

/* The element of the whole that is element k of a slice. */
static int64_t place_of(CornuType whole, CornuType slice, const CornuMesh *mesh, CornuLayout layout,
                        int shard, int64_t k)
{
    int64_t at = 0, stride = 1;
    for (int i = whole.shape.rank - 1; i >= 0; i--) {
        const int64_t n = slice.shape.extent[i], blocks = cornu__layout_blocks(layout, i);
        const int64_t of_block = whole.shape.extent[i] / blocks, piece = n / blocks;
        const int64_t index = k % n / piece * of_block + k % piece +
                              piece * cornu_mesh_index(mesh, layout.cut[i], shard);
        at += index * stride;
        stride *= whole.shape.extent[i];
        k /= n;
    }
    return at;
}

/* Moves the numbers of an input or output between the whole and the buffer of `program`. */
static void move(const Recorded *r, const CornuProgram *program, const CornuMesh *mesh,
                 unsigned data, CornuLayout layout, CornuValue whole, CornuValue own,
                 CornuBuffer *buffer, double *numbers, bool write)
{
    const CornuProgramValue *recorded = &r->program->values[whole];
    const CornuProgramValue *value = &program->values[own];
    const int       shards = value->varies ? cornu_mesh_size(mesh, ~0u) : 1;
    const CornuType type = cornu_program_buffer_type(program, own, cornu_mesh_size(mesh, ~0u));
    const int64_t   n = count_of(value->type), all = count_of(recorded->type);
    CornuArray      array = cornu_array_from(calloc((size_t)count_of(type), 8), type);
    if (!write) assert_int_equal(cornu_buffer_read(buffer, array), CORNU_OK);
    for (int s = 0; s < shards; s++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t of = recorded->varies ? cornu_mesh_index(mesh, data, s) * all : 0;
            double *at = &numbers[of + place_of(recorded->type, value->type, mesh, layout, s, k)];
            if (write) cornu_array_set(array, s * n + k, *at);
            else *at = cornu_array_get(array, s * n + k);
        }
    if (write) assert_int_equal(cornu_buffer_write(buffer, array), CORNU_OK);
    free(array.data);
}

/* Runs `program`, which is the recorded one for this mesh, and fills the outputs. */
static void run(Recorded *r, const CornuProgram *program, const CornuMesh *mesh, unsigned data,
                const CornuLayout *layouts)
{
    const int    shards = cornu_mesh_size(mesh, ~0u);
    CornuDevice *device = cornu_device_open("cpu", .shards = shards, .threads = 2);
    CornuBuffer *in[MOST], *out[MOST];
    static const CornuLayout whole;
    assert_non_null(device);
    CornuExecutable *executable = cornu_device_compile(device, program);
    if (!executable) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < program->input_count; i++) {
        in[i] = cornu_buffer_create(device,
                                    cornu_program_buffer_type(program, program->inputs[i], shards),
                                    .per_shard = program->values[program->inputs[i]].varies);
        move(r, program, mesh, data, layouts[i], r->program->inputs[i], program->inputs[i], in[i],
             r->in[i], true);
    }
    for (int i = 0; i < program->output_count; i++) {
        const CornuValue v = program->outputs[i].value;
        out[i] = cornu_buffer_create(device, cornu_program_buffer_type(program, v, shards),
                                     .per_shard = program->values[v].varies);
    }
    if (cornu_executable_run(executable, in, out)) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < program->output_count; i++) {
        const CornuValue old = r->program->outputs[i].value;
        r->out[i] = calloc((size_t)count_of(cornu_program_type(r->program, old)) * DATA, 8);
        move(r, program, mesh, data, whole, old, program->outputs[i].value, out[i], r->out[i],
             false);
    }
    for (int i = 0; i < program->input_count; i++) cornu_buffer_free(in[i]);
    for (int i = 0; i < program->output_count; i++) cornu_buffer_free(out[i]);
    cornu_executable_release(executable);
    cornu_device_close(device);
}

static int count_ops(const CornuProgram *program, CornuOpId id)
{
    int count = 0;
    for (int i = 0; i < program->op_count; i++) count += program->ops[i].id == id;
    return count;
}

/* Fetches the loss, and w - gradient for each parameter. */
static CornuProgram *step_of(CornuGraph *graph, CornuTensor *loss, CornuTensor *const *w, int count)
{
    CornuTensor *d[MOST], *fetched[MOST];
    assert_int_equal(cornu_gradients(loss, w, count, d), CORNU_OK);
    fetched[0] = cornu_op_all_reduce(loss);
    for (int i = 0; i < count; i++)
        fetched[1 + i] = cornu_op_subtract(w[i], cornu_op_scale(cornu_op_all_reduce(d[i]), 0.1));
    CornuProgram *program = cornu__graph_lowered(graph, fetched, 1 + count);
    if (!program) fail_msg("%s", cornu_error_message());
    return program;
}

static CornuTensor *squares(CornuTensor *y)
{
    return cornu_op_reduce_sum(cornu_op_multiply(y, y), CORNU_ALL_AXES, false);
}

static void compare(CornuProgram *program, const CornuMesh *mesh, unsigned data,
                    const CornuLayout *layouts, int sums, int gathers)
{
    const CornuMesh          one = { 1, { DATA }, { "batch" } };
    static const CornuLayout whole[MOST];
    Recorded                 r = { .program = program }, s = { .program = program };
    fill(&r);
    memcpy(s.in, r.in, sizeof s.in);
    run(&r, program, &one, 1, whole);
    CornuProgram *parts = cornu__partition(program, mesh, data, layouts);
    if (!parts) fail_msg("%s", cornu_error_message());
    run(&s, parts, mesh, data, layouts);
    for (int i = 0; i < program->output_count; i++) {
        const int64_t n = count_of(cornu_program_type(program, program->outputs[i].value));
        for (int64_t k = 0; k < n; k++)
            if (fabs(r.out[i][k] - s.out[i][k]) > 2e-5 * (1.0 + fabs(r.out[i][k])))
                fail_msg("output %d, element %d: %.9g, expected %.9g", i, (int)k, s.out[i][k],
                         r.out[i][k]);
        free(r.out[i]), free(s.out[i]);
    }
    for (int i = 0; i < program->input_count; i++) free(r.in[i]);
    if (getenv("PRINT")) cornu_program_print(parts, stdout);
    assert_int_equal(count_ops(parts, CORNU_OP_ALL_REDUCE), sums);
    assert_int_equal(count_ops(parts, CORNU_OP_ALL_GATHER), gathers);
    cornu_program_free(parts);
    cornu_program_free(program);
}

/* ---- Networks ---- */

typedef struct {
    CornuDevice *device;
    CornuGraph  *graph;
    CornuTensor *x, *w[MOST];
    int          count;
} Network;

static Network begin(CornuType x)
{
    Network n = { .device = cornu_device_open("cpu", .shards = DATA) };
    n.graph = cornu_graph_create(n.device);
    n.x = cornu__graph_add_input(n.graph, x, true, (CornuGraphInput){ 0 });
    assert_non_null(n.x);
    return n;
}

static CornuTensor *weight(Network *n, CornuShape shape)
{
    return n->w[n->count++] = cornu__graph_parameter(n->graph, cornu_type_from(CORNU_F32, shape));
}

static CornuProgram *end(Network *n, CornuTensor *y)
{
    if (!y) fail_msg("%s", cornu_error_message());
    CornuProgram *program = step_of(n->graph, squares(y), n->w, n->count);
    cornu_graph_free(n->graph);
    cornu_device_close(n->device);
    return program;
}

static CornuTensor *dense(Network *n, CornuTensor *x, int64_t units)
{
    const CornuShape shape = cornu_tensor_shape(x);
    CornuTensor *y = cornu_op_matmul(x, weight(n, cornu_shape(shape.extent[shape.rank - 1],
                                                              units)));
    return cornu_op_add(y, cornu_op_broadcast(weight(n, cornu_shape(units)),
                                              cornu_tensor_shape(y)));
}

static CornuProgram *two_layers(void)
{
    Network      n = begin(cornu_type(CORNU_F32, ROWS, 16));
    CornuTensor *h = cornu_op_relu(dense(&n, n.x, 32));
    return end(&n, cornu_op_tanh(dense(&n, h, 8)));
}

static const CornuMesh batch_model = { 2, { DATA, 4 }, { "batch", "model" } };

/* Two layers, the first cut along its columns, the second along its rows: a sum forward, for the
 * result, and none backward, as nobody asks for the gradient of x; the others are of the loss and
 * of the gradients, over the batch, and gathers are for what is fetched. */
static void column_then_row(void **state)
{
    (void)state;
    const CornuLayout layouts[5] = {
        { .cut = { 0 } }, { .cut = { 0, 2 } }, { .cut = { 2 } }, { .cut = { 2 } }, { .cut = { 0 } }
    };
    compare(two_layers(), &batch_model, 1, layouts, 6, 3);
}

/* Weights in slices along the batch: gathered where they are read, forward and, that of the second
 * product, again backward; gradients scattered. */
static void along_the_batch(void **state)
{
    (void)state;
    const CornuMesh   mesh = { 1, { DATA }, { "batch" } };
    const CornuLayout layouts[5] = {
        { .cut = { 0 } }, { .cut = { 1 } }, { .cut = { 1 } }, { .cut = { 0, 1 } }, { .cut = { 1 } }
    };
    compare(two_layers(), &mesh, 1, layouts, 1, 9);
}

/* Cuts that no op keeps: of rows first, and along both axes of the mesh at once. */
static void row_then_column(void **state)
{
    (void)state;
    const CornuLayout layouts[5] = {
        { .cut = { 0 } }, { .cut = { 2, 1 } }, { .cut = { 3 } }, { .cut = { 0, 2 } },
        { .cut = { 2 } }
    };
    compare(two_layers(), &batch_model, 1, layouts, 6, 7);
}

/* Heads of attention by slices of the kernels' columns, and of the rows of the projection. */
static void heads(void **state)
{
    (void)state;
    enum { T = 5, D = 8, N = 4, H = 2 };
    Network n = begin(cornu_type(CORNU_F32, ROWS, T, D));
    CornuTensor *q[3];
    for (int i = 0; i < 3; i++)
        q[i] = cornu_op_reshape(dense(&n, n.x, N * H), cornu_shape(ROWS, T, N, H));
    CornuTensor *in[3] = { q[0], q[1], q[2] };
    for (int i = 0; i < 3; i++) {
        const int order[] = { 0, 2, 1, 3 };
        in[i] = cornu_op_transpose(in[i], order);
    }
    CornuTensor *scores = cornu_op_softmax(cornu_op_matmul_transposed(in[0], false, in[1], true));
    CornuTensor *y = cornu_op_matmul(scores, in[2]);
    const int back[] = { 0, 2, 1, 3 };
    y = cornu_op_reshape(cornu_op_transpose(y, back), cornu_shape(ROWS, T, N * H));
    CornuProgram *program = end(&n, dense(&n, y, D));
    const CornuLayout column = { .cut = { 0, 2 } }, bias = { .cut = { 2 } }, row = { .cut = { 2 } };
    const CornuLayout layouts[9] = {
        { .cut = { 0 } }, column, bias, column, bias, column, bias, row
    };
    compare(program, &batch_model, 1, layouts, 10, 7);
}

/* Filters cut, then channels. */
static void filters(void **state)
{
    (void)state;
    Network          n = begin(cornu_type(CORNU_F32, ROWS, 6, 6, 3));
    const CornuConvolution same = { .low = { 1, 1 }, .high = { 1, 1 } };
    CornuTensor *y = cornu_op_conv2d(n.x, weight(&n, cornu_shape(3, 3, 3, 8)), &same);
    y = cornu_op_relu(y);
    y = cornu_op_conv2d(y, weight(&n, cornu_shape(3, 3, 8, 4)), &same);
    CornuProgram     *program = end(&n, cornu_op_tanh(y));
    const CornuLayout layouts[3] = {
        { .cut = { 0 } }, { .cut = { 0, 0, 0, 2 } }, { .cut = { 0, 0, 2, 0 } }
    };
    compare(program, &batch_model, 1, layouts, 4, 2);
}

/* ---- Recurrences ---- */

enum { UNITS = 8 };

/* The collectives of the bodies of loops, before which no kernel is gathered. */
static void count_in_loops(const CornuProgram *program, int count[CORNU_OP_COUNT])
{
    int gathered = 0;
    memset(count, 0, CORNU_OP_COUNT * sizeof *count);
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        gathered += op->id == CORNU_OP_ALL_GATHER &&
                    count_of(cornu_program_type(program, op->out_first)) == UNITS * 4 * UNITS;
        if (op->id != CORNU_OP_SCAN) continue;
        const CornuProgram *body = op->attributes.scan.body;
        for (int k = 0; k < body->op_count; k++) count[body->ops[k].id]++;
        assert_int_equal(gathered, 0);
    }
}

/* By units each step gathers h, and backwards scatters its gradient's sum; by rows it sums the
 * product of h with the kernel, and backwards gathers d_z. */
static void recurrences(void **state)
{
    (void)state;
    const CornuLayout by_units = { .cut = { 0, 2 }, .blocks = { 0, 4 } };
    const CornuLayout of_bias = { .cut = { 2 }, .blocks = { 4 } }, by_rows = { .cut = { 2 } };
    const CornuLayout layouts[2][4] = {
        { { .cut = { 0 } }, by_units, of_bias, by_units },
        { { .cut = { 0 } }, { .cut = { 0 } }, { .cut = { 0 } }, by_rows },
    };
    static const struct { int sums, gathers, in_loops[3]; } expected[2] = {
        { 4, 4, { 0, 1, 1 } }, { 4, 5, { 1, 1, 0 } },
    };
    for (int i = 0; i < 2; i++) {
        Network         n = begin(cornu_type(CORNU_F32, ROWS, TIMES, 3));
        CornuTensor    *z = dense(&n, n.x, 4 * UNITS), *kernel;
        CornuTensor    *zeros = cornu_op_constant(n.graph, cornu_type(CORNU_F32, ROWS, UNITS), 0.0);
        int             found[CORNU_OP_COUNT];
        kernel = weight(&n, cornu_shape(UNITS, 4 * UNITS));
        CornuProgram *program = end(&n, cornu_op_lstm(z, kernel, zeros, zeros, NULL, NULL));
        CornuProgram *parts = cornu__partition(program, &batch_model, 1, layouts[i]);
        assert_non_null(parts);
        count_in_loops(parts, found);
        cornu_program_free(parts);
        assert_int_equal(found[CORNU_OP_ALL_REDUCE], expected[i].in_loops[0]);
        assert_int_equal(found[CORNU_OP_ALL_GATHER], expected[i].in_loops[1]);
        assert_int_equal(found[CORNU_OP_REDUCE_SCATTER], expected[i].in_loops[2]);
        compare(program, &batch_model, 1, layouts[i], expected[i].sums, expected[i].gathers);
    }
}

/* ---- Axes that are numbered ---- */

static CornuTensor *input(Network *n, CornuType type)
{
    return cornu__graph_add_input(n->graph, type, true, (CornuGraphInput){ 0 });
}

/* Rows of a table that is cut along them: the shards' terms are summed, and nothing is gathered but
 * the new table, which is fetched. Along its features: nothing is exchanged at the lookup. */
static void lookups(void **state)
{
    (void)state;
    const CornuLayout cuts[3] = { { .cut = { 2 } }, { .cut = { 0, 2 } }, { .cut = { 2, 0 } } };
    const int         sums[3] = { 4, 3, 4 }, gathers[3] = { 1, 2, 1 };
    for (int i = 0; i < 3; i++) {
        Network           n = begin(cornu_type(CORNU_I32, ROWS, TIMES));
        CornuTensor      *y = cornu_op_gather(weight(&n, cornu_shape(CLASSES, 8)), n.x);
        const CornuLayout layouts[3] = { { .cut = { 0 } }, cuts[i] };
        compare(end(&n, cornu_op_tanh(cornu_op_add(y, cornu_op_broadcast(
                    weight(&n, cornu_shape(8)), cornu_tensor_shape(y))))), &batch_model, 1, layouts,
                sums[i], gathers[i]);
    }
}

/* The classes of a loss in slices. The maxima and sums of rows are there twice, for the loss and
 * its gradient, until the compiler joins equal ops. */
static void classes(void **state)
{
    (void)state;
    Network      n = begin(cornu_type(CORNU_F32, ROWS, 16));
    CornuTensor *labels = input(&n, cornu_type(CORNU_I32, ROWS));
    CornuTensor *logits = dense(&n, n.x, CLASSES);
    const CornuLayout layouts[4] = {
        { .cut = { 0 } }, { .cut = { 0 } }, { .cut = { 0, 2 } }, { .cut = { 2 } }
    };
    compare(end(&n, cornu_op_sparse_cross_entropy(logits, labels)), &batch_model, 1, layouts, 6, 4);
}

/* ---- The largest of slices ---- */

/* Fetches, for rows of 12 numbers that are products with a cut kernel, where the largest is. */
static CornuProgram *found(Network *n, CornuTensor *x)
{
    CornuTensor  *fetched[2] = { cornu_op_argmax(x, 1),
                                 cornu_op_reduce_max(x, 1 << 1, false) };
    CornuProgram *program = cornu__graph_lowered(n->graph, fetched, 2);
    if (!program) fail_msg("%s", cornu_error_message());
    cornu_graph_free(n->graph);
    cornu_device_close(n->device);
    return program;
}

/* The first of equal ones, wherever the slices end, and NaN before all. */
static void largest(void **state)
{
    (void)state;
    static const double rows[6][CLASSES] = {
        { 0, 1, 2, 5, 4, 5, 5, 3, 2, 1, 0, 5 },
        { -1, -2, -1, -9, -8, -1, -3, -1, -1, -7, -1, -2 },
        { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },    { 1, 2, 3, 4, NAN, 9, NAN, 1, 2, 3, 4, 5 },
        { -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
          -INFINITY, -INFINITY, -INFINITY, -INFINITY }, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 },
    };
    static const double index[6] = { 3, 0, 0, 4, 0, 11 };
    const CornuLayout   layouts[1] = { { .cut = { 0, 2 } } };
    Network             n = { .device = cornu_device_open("cpu", .shards = DATA) };
    n.graph = cornu_graph_create(n.device);
    Recorded      r = { .program = found(&n, weight(&n, cornu_shape(6, CLASSES))) };
    CornuProgram *parts = cornu__partition(r.program, &batch_model, 1, layouts);
    r.in[0] = malloc(sizeof rows);
    memcpy(r.in[0], rows, sizeof rows);
    run(&r, parts, &batch_model, 1, layouts);
    for (int i = 0; i < 6; i++) {
        const double most = rows[i][(int)index[i]];
        assert_true(r.out[0][i] == index[i]);
        assert_true(isnan(most) ? isnan(r.out[1][i]) : r.out[1][i] == most);
    }
    free(r.in[0]), free(r.out[0]), free(r.out[1]);
    cornu_program_free(parts);
    cornu_program_free(r.program);
}

/* Rows of a cut table that are replaced, and one that there is not. */
static void replaced_rows(void **state)
{
    (void)state;
    const CornuLayout cuts[3] = { { .cut = { 2 } }, { .cut = { 0, 2 } }, { .cut = { 0 } } };
    for (int i = 0; i < 3; i++) {
        static const double at[4] = { 7, 12, 0, 11 };
        const CornuMesh     one = { 1, { DATA }, { "batch" } };
        const CornuLayout   layouts[3] = { cuts[i], { .cut = { 0 } }, { .cut = { 0 } } };
        static const CornuLayout whole[3];
        Network             n = { .device = cornu_device_open("cpu", .shards = DATA) };
        n.graph = cornu_graph_create(n.device);
        CornuTensor  *table = weight(&n, cornu_shape(CLASSES, 8));
        CornuTensor  *rows = cornu__graph_parameter(n.graph, cornu_type(CORNU_I32, 4));
        CornuTensor  *y = cornu_op_scatter_rows(table, rows, weight(&n, cornu_shape(4, 8)));
        CornuTensor  *fetched[2] = { y, cornu_op_gather_rows(table, rows) };
        CornuProgram *program = cornu__graph_lowered(n.graph, fetched, 2);
        if (!program) fail_msg("%s", cornu_error_message());
        CornuProgram *parts = cornu__partition(program, &batch_model, 1, layouts);
        Recorded      r = { .program = program }, s = { .program = program };
        fill(&r);
        memcpy(r.in[1], at, sizeof at);
        memcpy(s.in, r.in, sizeof s.in);
        run(&r, program, &one, 1, whole);
        run(&s, parts, &batch_model, 1, layouts);
        for (int k = 0; k < CLASSES * 8; k++) assert_true(r.out[0][k] == s.out[0][k]);
        for (int k = 0; k < 4 * 8; k++) assert_true(r.out[1][k] == s.out[1][k]);
        for (int k = 0; k < 3; k++) free(r.in[k]);
        for (int k = 0; k < 2; k++) free(r.out[k]), free(s.out[k]);
        cornu_program_free(parts);
        cornu_program_free(program);
        cornu_graph_free(n.graph);
        cornu_device_close(n.device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(column_then_row), cmocka_unit_test(along_the_batch),
        cmocka_unit_test(row_then_column), cmocka_unit_test(heads), cmocka_unit_test(filters),
        cmocka_unit_test(recurrences), cmocka_unit_test(lookups), cmocka_unit_test(classes),
        cmocka_unit_test(largest), cmocka_unit_test(replaced_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
