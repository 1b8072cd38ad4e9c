#include "generator_internal.h"

#include <stdlib.h>
#include <string.h>

#include "../../tensor/graph_internal.h"

/* splitmix64: every seed a stream of its own. Source: Steele, Lea, Flood, "Fast Splittable
 * Pseudorandom Number Generators", OOPSLA 2014. */
uint64_t gen_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t pick(uint64_t *state, int64_t count)
{
    const uint64_t drawn = gen_bits(state);
    return count > 0 ? (int64_t)(drawn % (uint64_t)count) : 0;
}

static void add_op(Generator *g)
{
    static const CornuOpId common[] = {
        CORNU_OP_ADD, CORNU_OP_MULTIPLY, CORNU_OP_SUBTRACT, CORNU_OP_RELU, CORNU_OP_TANH,
        CORNU_OP_RESHAPE, CORNU_OP_RESHAPE, CORNU_OP_TRANSPOSE, CORNU_OP_BROADCAST,
        CORNU_OP_REDUCE_SUM, CORNU_OP_REDUCE_SUM, CORNU_OP_REDUCE_MAX, CORNU_OP_SELECT,
        CORNU_OP_CONVERT, CORNU_OP_SLICE, CORNU_OP_MATMUL, CORNU_OP_CONCAT,
    };
    const int64_t kind = draw(g, 100);
    if (gen_layer(g, kind)) return;
    const CornuOpId id = kind < 60 ? common[draw(g, sizeof common / sizeof *common)]
                                   : (CornuOpId)draw(g, CORNU_OP_COUNT);
    gen_op(g, id);
}

/* ---- Whole programs ---- */

static void choose_outputs(Generator *g)
{
    CornuProgram *p = g->c->program;
    const int     inputs = p->input_count, count = 1 + (int)draw(g, 4);
    bool          taken[MOST_VALUES + 64] = { false };
    for (int i = 0; i < count; i++) {
        CornuValue v = (CornuValue)(i == 0 ? p->value_count - 1 : draw(g, p->value_count));
        cornu_program_output(p, v, -1);
    }
    for (int k = p->value_count - 1; k >= 0; k--)    /* some inputs are variables */
        for (int i = 0; i < inputs && p->values[k].op >= 0; i++) {
            const CornuProgramValue *in = &p->values[p->inputs[i]], *v = &p->values[k];
            if (taken[i] || !cornu_type_equal(in->type, v->type) || in->varies != v->varies ||
                !chance(g, 25))
                continue;
            taken[i] = true;
            cornu_program_output(p, k, i);
            break;
        }
}

/* The loss is the sum of some values, each element times a weight of its own; `summed` over the
 * shards, or each shard's part of it. */
static CornuTensor *loss_of(Generator *g, CornuTensor *const *tensor, bool summed)
{
    const CornuProgram *p = g->c->program;
    CornuTensor        *loss = NULL;
    for (int i = 0; i < 1 + draw(g, 3) || (!loss && i < 12); i++) {
        const CornuValue v = (CornuValue)(i == 0 ? p->value_count - 1 : draw(g, p->value_count));
        if (p->values[v].op < 0 || !cornu_dtype_is_float(gen_type_of(g, v).dtype))
            continue;
        CornuTensor *y = cornu_op_convert(tensor[v], CORNU_F32);
        const CornuType type = cornu_tensor_type(y);
        CornuTensor *term = y;
        if (type.shape.rank > 0)
            term = cornu_op_multiply(y, cornu_op_shift(cornu_op_scale(cornu_op_iota(
                       cornu_tensor_graph(y), type, type.shape.rank - 1), 0.25), 0.5));
        term = cornu_op_reduce_sum(term, CORNU_ALL_AXES, false);
        if (cornu_tensor_varies(term) && summed) term = cornu_op_all_reduce(term);
        loss = loss ? cornu_op_add(loss, term) : term;
    }
    return loss;
}

/* Adds gradients by its float inputs as outputs to the case; false if there are none. */
static bool differentiate(Generator *g)
{
    CornuProgram *p = g->c->program;
    CornuDevice  *device = cornu_device_open(.name = "cpu", .threads = 1, .shards = g->c->shards);
    CornuTensor **tensor = calloc((size_t)p->value_count + 1, sizeof *tensor);
    CornuTensor  *x[64], *d_x[64];
    int           count = 0;
    bool          done = false;
    CornuGraph   *graph = device ? trial_graph(g->c, device, tensor) : NULL;
    if (!graph) goto end;
    CornuTensor *loss = loss_of(g, tensor, chance(g, 40));
    for (int i = 0; i < p->input_count; i++)
        if (cornu_dtype_is_float(gen_type_of(g, p->inputs[i]).dtype))
            x[count++] = tensor[p->inputs[i]];
    if (!loss || !count || cornu_gradients(loss, x, count, d_x)) goto end;
    for (int i = 0; i < count; i++)   /* as optimizers do */
        if (cornu_tensor_varies(d_x[i]) && !cornu_tensor_varies(x[i]) && chance(g, 80) &&
            cornu_tensor_type(d_x[i]).dtype == CORNU_F32)
            d_x[i] = cornu_op_all_reduce(d_x[i]);
    Trial with = { .program = cornu_program_copy(graph->program), .shards = g->c->shards };
    with.input = calloc((size_t)p->input_count + 1, sizeof *with.input);
    with.input_space = p->input_count + 1;
    for (int i = 0; i < p->input_count; i++) {
        const int64_t n = trial_count(g->c, i);
        with.input[i] = calloc((size_t)n + 1, sizeof(double));
        memcpy(with.input[i], g->c->input[i], (size_t)n * sizeof(double));
    }
    Bounds b;
    if (bounds_of(&b, with.program, with.shards, with.input, NULL) == CORNU_OK) {
        for (int i = 0; i < count; i++) {
            Generator at = { &with, 0, b };
            if (with.program->values[d_x[i]->value].op >= 0 &&
                gen_usable(&at, d_x[i]->value))
                done |= cornu_program_output(with.program, d_x[i]->value, -1) == CORNU_OK;
        }
        cornu_program_output(with.program, loss->value, -1);
    }
    bounds_free(&b);
    Trial pruned;
    done = done && trial_pruned(&with, NULL, &pruned);
    trial_free(&with);
    if (done) {
        trial_free(g->c);
        *g->c = pruned;
    }
end:
    cornu_error_take();
    free(tensor);
    cornu_graph_free(graph);
    cornu_device_close(device);
    return done;
}

/* The first that is drawn. */
static int draw_shards(Generator *g)
{
    static const int shards[] = { 1, 1, 1, 1, 2, 4, 8, 8 };
    static const int others[] = { 3, 5, 6, 9, 11, 12, 16, MOST_SHARDS };
    const int drawn = shards[draw(g, 8)];
    return drawn > 1 && chance(g, 40) ? others[draw(g, 8)] : drawn;
}

int generated_shards(uint64_t seed) { return draw_shards(&(Generator){ .state = seed }); }

bool generate(uint64_t seed, Trial *c)
{
    Generator g = { .c = c, .state = seed };
    *c = (Trial){ .program = cornu_program_create(), .shards = draw_shards(&g) };
    g.bounds = (Bounds){ .shards = c->shards };
    for (int i = 0; i < 3; i++)
        gen_fresh(&g,
                  cornu_type_from(i ? gen_a_float(&g) : CORNU_F32,
                                  gen_a_shape(&g, 1 + (int)draw(&g, 4))),
                  chance(&g, 80) ? ANY : VARIED, 0);
    /* One in eight is a layer with its gradients and little else: these have kernels of their own,
     * which any other reader of a value would rule out. */
    const bool layer = chance(&g, 12);
    if (layer && chance(&g, 50)) gen_make_wide_layer(&g);
    else if (layer) gen_make_lookup(&g);
    const int ops = c->program->op_count + (layer ? (int)draw(&g, 3)
                                                  : 3 + (int)draw(&g, chance(&g, 30) ? 50 : 20));
    for (int tries = 0; tries < 4 * ops && c->program->op_count < ops; tries++) add_op(&g);
    const bool some = c->program->op_count > 0;
    const bool gradients = some && (layer || chance(&g, 35));
    if (some && !(gradients && differentiate(&g))) {
        choose_outputs(&g);
        Trial pruned;
        if (trial_pruned(c, NULL, &pruned)) {
            trial_free(c);
            *c = pruned;
        }
    }
    bounds_free(&g.bounds);
    return some;
}

bool generated_setting(uint64_t seed, const Trial *c, int i, Setting *setting)
{
    uint64_t  state = seed ^ 0x5e771465u;
    const int isas = (int)cornu__cpu()->best + 1;
    const int threads = 2 + (int)pick(&state, 3);
    const CornuIsa isa = (CornuIsa)pick(&state, isas), other = (CornuIsa)pick(&state, isas);
    const Setting settings[] = {
        { "reference", CORNU_ISA_PORTABLE, 1 }, { "rewrite", CORNU_ISA_PORTABLE, 1 },
        { "cpu", isa, threads }, { "tpu", other, 1 + (int)pick(&state, 4) },
    };
    const int first = c->shards > 1 ? 1 : 0;   /* the reference device has one shard */
    if (i + first >= (int)(sizeof settings / sizeof *settings)) return false;
    *setting = settings[i + first];
    return true;
}
