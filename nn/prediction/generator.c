/*
 * A generator has a clone of the model, on a device of its own, and programs of it with call->past
 * (nn/layers/steps/past_internal.h): one for a step of all sequences, and some for many steps at
 * once, of lengths that are powers of two. They share the states that the layers keep.
 */
#include "generator.h"

#include "../layers/steps/past_internal.h"
#include "../model/host_stage_internal.h"
#include "../training/training_internal.h"

enum { ANY_STEPS = 128, FEWEST_STEPS = 16 };

typedef struct Program {
    CornuGraph     *graph;
    int64_t         steps;
    bool            begins;
    CornuTensor    *tokens, *position, *count;   /* i32: (B, steps), (B), (B) */
    CornuTensor    *next;                        /* f32 (B, V) */
    struct Program *more;
} Program;

struct CornuTokenGenerator {
    CornuModel     *model;
    CornuDevice    *device;
    int64_t         batch, vocabulary;
    int64_t         most;        /* steps of a program */
    bool            windowed;    /* and of a sequence */
    bool            checked;     /* layers go step by step */
    CornuWhenFull     when_full;
    CornuVariable **states;
    int             state_count, state_space, state_next;
    Program        *programs;
    int32_t        *tokens;      /* (B, most), those fed */
    int32_t        *window;      /* (B, most), the tokens that a window holds */
    int32_t        *position, *count, *filled;   /* (B) */
    float          *rows;        /* (B, V) */
};

/* ---- Recording ---- */

static CornuVariable *next_state(void *context, CornuType type)
{
    CornuTokenGenerator *g = context;
    if (g->state_next < g->state_count) return g->states[g->state_next++];
    if (cornu__reserve(&g->states, &g->state_space, g->state_count, 1, sizeof *g->states))
        return cornu__null();
    CornuVariable *state = cornu_variable_create(g->device, type, "past", CORNU_USE_OTHER);
    if (state) g->states[g->state_count++] = state;
    g->state_next = g->state_count;
    return state;
}

/* bool (B, T): the first count[b] steps of sequence b. */
static CornuTensor *valid_steps(const Program *program, CornuShape tokens)
{
    CornuTensor *t = cornu_op_iota(program->graph, cornu_type(CORNU_I32, 1, program->steps), 1);
    CornuTensor *count = cornu_op_reshape(program->count, cornu_shape(tokens.extent[0], 1));
    CornuTensor *valid = cornu_op_compare(t, CORNU_LESS, count);
    return valid ? cornu_op_broadcast(valid, tokens) : NULL;
}

/* Of y (B, T, V) the row of the last step of each sequence. */
static CornuTensor *last_rows(const CornuTokenGenerator *g, const Program *program, CornuTensor *y)
{
    const int64_t    T = program->steps;
    const CornuShape want = cornu_shape(g->batch, T, g->vocabulary);
    CornuText        a, b;
    y = cornu_op_convert(y, CORNU_F32);
    if (y && !cornu_shape_equal(cornu_tensor_shape(y), want))
        return cornu__fail_null(CORNU_ERR_SHAPE, "%s: the output is %s for %lld steps, expected %s",
                                cornu_model_name(g->model),
                                cornu_shape_print(&a, cornu_tensor_shape(y)), (long long)T,
                                cornu_shape_print(&b, want));
    CornuTensor *rows = cornu_op_reshape(y, cornu_shape(g->batch * T, g->vocabulary));
    if (!rows || T == 1) return rows;
    CornuTensor *last = cornu_op_shift(program->count, -1.0);
    last = cornu_op_maximum(last, cornu_op_constant_like(last, 0.0));
    CornuTensor *first = cornu_op_iota(program->graph, cornu_type(CORNU_I32, g->batch), 0);
    return cornu_op_gather(rows, cornu_op_add(last, cornu_op_scale(first, (double)T)));
}

/* Sets program->next; false with a pending error. */
static bool record(CornuTokenGenerator *g, Program *program, CornuPast *past)
{
    const CornuType i64 = cornu_scalar(CORNU_I64);
    const CornuType tokens = cornu_type(CORNU_I32, g->batch, program->steps);
    CornuGraph     *graph = program->graph;
    CornuTensor    *no_mask = NULL, *y, *y_mask;
    program->tokens = cornu_graph_input(graph, tokens);
    program->position = past->position = cornu_graph_input(graph, cornu_type(CORNU_I32, g->batch));
    program->count = cornu_graph_input(graph, cornu_type(CORNU_I32, g->batch));
    if (program->steps > 1 || g->most == 1) {   /* first tokens may be one step at a time */
        past->count = program->count;
        past->valid = valid_steps(program, tokens.shape);
    }
    CornuTensor *zero = cornu_op_constant(graph, i64, 0.0);
    CornuTensor *all = cornu_op_constant(graph, i64, (double)g->batch);
    CornuTensor *x = cornu__model_convert_input(g->model, 0, program->tokens);
    const CornuCall call = { .graph = graph, .count = all, .total = all, .iteration = zero,
                             .seed = cornu_read(graph, g->model->seed_variable), .position = zero,
                             .past = past };
    if (!x || cornu_error_pending() ||
        !cornu__model_call_layers(g->model, &call, &x, &no_mask, &y, &y_mask)) return false;
    program->next = last_rows(g, program, y);
    return program->next != NULL;
}

static void free_program(Program *program)
{
    if (program) cornu_graph_free(program->graph);
    cornu__release(program);
}

static CornuStatus make_program(CornuTokenGenerator *g, int64_t steps, bool begins, Program **made)
{
    CornuPast past = { .window = g->most, .begins = begins, .checked = g->checked, .context = g,
                       .state = next_state };
    Program  *program = cornu__allocate(1, sizeof *program);
    if (!program) return CORNU_ERR_MEMORY;
    *program = (Program){ .graph = cornu_graph_create(g->device), .steps = steps,
                          .begins = begins, .more = g->programs };
    g->state_next = 0;
    CornuStatus status = program->graph && record(g, program, &past) ? CORNU_OK
                                                                     : cornu_error_take();
    if (!status) {
        cornu_graph_set_concurrent(program->graph, cornu_device_runs_twins(g->device));
        status = cornu_graph_prepare(program->graph, &program->next, 1);
    }
    if (status) {
        free_program(program);
        return status;
    }
    g->windowed |= past.windowed;
    g->checked = true;
    *made = g->programs = program;
    return CORNU_OK;
}

/* ---- Making ---- */

static CornuStatus check_model(const CornuTokenGeneratorConfig *config)
{
    const CornuModel *model = config->model;
    CornuText         a, b;
    if (!model) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_generator: no model is given");
    CORNU__TRY(cornu__model_check(model));
    if (config->batch_size < 0 || config->sequence_length < 0 || config->threads < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_generator: .%s is negative, expected at "
                           "least 1", config->batch_size < 0 ? "batch_size"
                           : config->sequence_length < 0     ? "sequence_length" : "threads");
    if ((unsigned)config->window > CORNU_WINDOW_STOPS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_generator: .window is %d, expected "
                           "CORNU_WINDOW_SLIDES, _HALVES or _STOPS", (int)config->window);
    if (!model->base.built || cornu__model_is_function(model) || cornu__model_on_host(model) ||
        model->input_count != 1 || model->output_count != 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "cornu_generator: expected a built model of one "
                           "input and one output, all of whose layers run on the device; %s is "
                           "another", cornu_model_name(model));
    const CornuShape in = cornu_model_input_shape(model), out = cornu_model_output_shape(model);
    if (in.rank == 2 && in.extent[1] != 0 && out.rank == 3 && out.extent[1] == in.extent[1] &&
        out.extent[2] > 0)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "cornu_generator: %s maps %s to %s, expected tokens "
                       "(None, T) to what is predicted after each, (None, T, V)",
                       cornu_model_name(model), cornu_shape_print(&a, in),
                       cornu_shape_print(&b, out));
}

static CornuStatus clone_model(CornuTokenGenerator *g, const CornuTokenGeneratorConfig *config)
{
    const CornuModel *model = config->model;
    g->device = model->device ? cornu_device_open_like(model->device, config->threads)
                              : cornu_device_open("cpu", .threads = (int)config->threads);
    if (!g->device) return cornu_error_take();
    if (cornu_device_shards(g->device) > 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "cornu_generator: the model is on a device of %d "
                           "shards, expected one", cornu_device_shards(g->device));
    g->model = cornu_model_clone(model);
    if (!g->model) return cornu__fail_prefix(cornu_error_take(), "cornu_generator");
    g->model->seed = model->seed;
    CORNU__TRY(cornu_model_copy_weights(g->model, model));
    CORNU__TRY(cornu__model_predict_on(g->model, g->device));
    return cornu__model_make_variables(g->model);
}

static CornuStatus fill_generator(CornuTokenGenerator *g, const CornuTokenGeneratorConfig *config)
{
    const CornuShape out = cornu_model_output_shape(config->model);
    Program         *step;
    g->batch = config->batch_size ? config->batch_size : 1;
    g->vocabulary = out.extent[2];
    g->most = cornu_model_input_shape(config->model).extent[1];
    if (g->most == CORNU_NONE)
        g->most = config->sequence_length ? config->sequence_length : ANY_STEPS;
    g->when_full = config->window;
    CORNU__TRY(clone_model(g, config));
    const size_t batch = (size_t)g->batch, most = (size_t)g->most;
    g->tokens = cornu__allocate(batch * most, sizeof *g->tokens);
    g->window = cornu__allocate(batch * most, sizeof *g->window);
    g->position = cornu__allocate(batch, sizeof *g->position);
    g->count = cornu__allocate(batch, sizeof *g->count);
    g->filled = cornu__allocate(batch, sizeof *g->filled);
    g->rows = cornu__allocate(batch * (size_t)g->vocabulary, sizeof *g->rows);
    if (!g->tokens || !g->window || !g->position || !g->count || !g->filled || !g->rows)
        return CORNU_ERR_MEMORY;
    return make_program(g, 1, false, &step);
}

static CornuStatus make_generator(CornuTokenGenerator *g, const CornuTokenGeneratorConfig *config)
{
    CORNU__TRY(cornu__refused_status());
    CORNU__TRY(check_model(config));
    CORNU__WITHIN(config->model, "cornu_generator", fill_generator(g, config));
}

CornuTokenGenerator *cornu_generator_from(const CornuTokenGeneratorConfig *config)
{
    CornuTokenGenerator *g = cornu__allocate(1, sizeof *g);
    if (!g) return cornu__null();
    if (!make_generator(g, config)) return g;
    cornu_generator_free(g);
    return cornu__null();
}

void cornu_generator_free(CornuTokenGenerator *g)
{
    if (!g) return;
    for (Program *more, *program = g->programs; program; program = more) {
        more = program->more;
        free_program(program);
    }
    for (int i = 0; i < g->state_count; i++) cornu_variable_free(g->states[i]);
    cornu__release(g->states);
    cornu__release(g->tokens);
    cornu__release(g->window);
    cornu__release(g->position);
    cornu__release(g->count);
    cornu__release(g->filled);
    cornu__release(g->rows);
    cornu_model_free(g->model);
    cornu_device_close(g->device);
    cornu__release(g);
}

const CornuModel *cornu_generator_model(const CornuTokenGenerator *g)
{
    CORNU__NEED_OR(g, NULL);
    return g->model;
}

int64_t cornu_generator_batch_size(const CornuTokenGenerator *g) { return g ? g->batch : 0; }
int64_t cornu_generator_vocabulary(const CornuTokenGenerator *g) { return g ? g->vocabulary : 0; }
int64_t cornu_generator_window(const CornuTokenGenerator *g)
{
    return g && g->windowed ? g->most : 0;
}

/* ---- Running ---- */

/* Runs the program on what is fed: tokens, position and count. */
static CornuStatus run(CornuTokenGenerator *g, int64_t steps, bool begins, CornuArray to)
{
    Program *program = g->programs;
    while (program && (program->steps != steps || program->begins != begins))
        program = program->more;
    if (!program) CORNU__TRY(make_program(g, steps, begins, &program));
    CORNU__TRY(cornu_graph_feed(program->tokens,
                                cornu_array(g->tokens, CORNU_I32, g->batch, steps)));
    CORNU__TRY(cornu_graph_feed(program->position, cornu_array(g->position, CORNU_I32, g->batch)));
    CORNU__TRY(cornu_graph_feed(program->count, cornu_array(g->count, CORNU_I32, g->batch)));
    return cornu_run(program->graph, &program->next, 1, &to);
}

/* The steps of a program for so many. */
static int64_t program_steps(const CornuTokenGenerator *g, int64_t steps)
{
    int64_t most = FEWEST_STEPS;
    while (most < steps) most *= 2;
    return most < g->most ? most : g->most;
}

static CornuStatus read_token(CornuArray tokens, int64_t i, int32_t *token)
{
    const double value = cornu_array_get(tokens, i);
    *token = (int32_t)value;
    if (value >= 0.0 && value <= INT32_MAX) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "cornu_generator: token %lld is %.0f, expected 0 to %d",
                       (long long)i, value, INT32_MAX);
}

static CornuStatus check_arrays(const CornuTokenGenerator *g, CornuArray to)
{
    const CornuType want = cornu_type(CORNU_F32, g->batch, g->vocabulary);
    CornuText       a, b;
    if (to.data && cornu_type_equal(to.type, want)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "cornu_generator: the array for results is %s%s, expected "
                       "%s", to.data ? "" : "NULL, ", cornu_type_print(&a, to.type),
                       cornu_type_print(&b, want));
}

/* ---- With a window ---- */

/* Computes the windows of all sequences. */
static CornuStatus run_windows(CornuTokenGenerator *g, CornuArray to)
{
    int64_t longest = 1;
    for (int64_t b = 0; b < g->batch; b++)
        if (g->filled[b] > longest) longest = g->filled[b];
    const int64_t steps = program_steps(g, longest);
    for (int64_t b = 0; b < g->batch; b++) {
        g->position[b] = 0;
        g->count[b] = g->filled[b];
        for (int64_t t = 0; t < steps; t++)
            g->tokens[b * steps + t] = t < g->filled[b] ? g->window[b * g->most + t] : 0;
    }
    return run(g, steps, true, to);
}

static CornuStatus begin_windows(CornuTokenGenerator *g, const CornuArray *primes, CornuArray to)
{
    for (int64_t b = 0; b < g->batch; b++) {
        const int64_t count = primes[b].type.shape.extent[0];
        const int64_t first = count > g->most ? count - g->most : 0;
        for (int64_t t = first; t < count; t++)
            CORNU__TRY(read_token(primes[b], t, &g->window[b * g->most + t - first]));
        g->filled[b] = (int32_t)(count - first);
    }
    return run_windows(g, to);
}

/* Makes room in a full window: with the next token half of it is a power of two more often. */
static void forget(CornuTokenGenerator *g, int64_t b)
{
    const int64_t half = g->most > 1 ? g->most / 2 : 1;
    const int64_t kept = (g->when_full == CORNU_WINDOW_HALVES ? half : g->most) - 1;
    int32_t      *window = g->window + b * g->most;
    memmove(window, window + g->most - kept, (size_t)kept * sizeof *window);
    g->filled[b] = (int32_t)kept;
}

static CornuStatus next_in_windows(CornuTokenGenerator *g, CornuArray to)
{
    bool again = false;
    for (int64_t b = 0; b < g->batch; b++) {
        if (g->tokens[b] < 0 || g->filled[b] < g->most) continue;
        if (g->when_full == CORNU_WINDOW_STOPS)
            return cornu__fail(CORNU_ERR_VALUE, "%s: sequence %lld has %lld tokens, as many as the "
                               "model's window; expected fewer, or a window that slides or halves",
                               cornu_model_name(g->model), (long long)b, (long long)g->most);
        again = true;
    }
    for (int64_t b = 0; b < g->batch; b++) {
        const int32_t full = g->filled[b] == g->most;
        g->position[b] = g->filled[b] - full;   /* of an ended one what is written is not read */
        if (g->tokens[b] < 0) {
            g->tokens[b] = 0;
            continue;
        }
        if (full) forget(g, b);
        g->window[b * g->most + g->filled[b]++] = g->tokens[b];
    }
    return again ? run_windows(g, to) : run(g, 1, false, to);
}

/* ---- Without ---- */

/* The first tokens, g->most at a time: the row of a sequence is that of its last ones. */
static CornuStatus begin_without(CornuTokenGenerator *g, const CornuArray *primes, CornuArray to)
{
    int64_t longest = 1, steps;
    for (int64_t b = 0; b < g->batch; b++) {
        const int64_t count = primes[b].type.shape.extent[0];
        g->filled[b] = 0;
        if (count > longest) longest = count;
    }
    for (int64_t first = 0; first < longest; first += steps) {
        steps = program_steps(g, longest - first);
        for (int64_t b = 0; b < g->batch; b++) {
            const int64_t left = primes[b].type.shape.extent[0] - first;
            const int64_t count = left < 0 ? 0 : left < steps ? left : steps;
            g->position[b] = 0;   /* no layer asks for it */
            g->count[b] = (int32_t)count;
            for (int64_t t = 0; t < steps; t++) {
                g->tokens[b * steps + t] = 0;
                if (t < count)
                    CORNU__TRY(read_token(primes[b], first + t, &g->tokens[b * steps + t]));
            }
        }
        CORNU__TRY(run(g, steps, first == 0, cornu_array(g->rows, CORNU_F32, g->batch,
                                                         g->vocabulary)));
        for (int64_t b = 0; b < g->batch; b++)
            if (g->count[b] > 0)
                memcpy((float *)to.data + b * g->vocabulary, g->rows + b * g->vocabulary,
                       (size_t)g->vocabulary * sizeof *g->rows);
    }
    return CORNU_OK;
}

/* ---- Both ---- */

static CornuStatus begin(CornuTokenGenerator *g, const CornuArray *primes, CornuArray to)
{
    CornuText text;
    CORNU__TRY(check_arrays(g, to));
    for (int64_t b = 0; b < g->batch; b++) {
        const CornuType type = primes[b].type;
        if (type.shape.rank == 1 && type.shape.extent[0] > 0 && primes[b].data &&
            !cornu_dtype_is_float(type.dtype))
            continue;
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_generator: the first tokens of sequence %lld "
                           "are %s, expected a vector of at least one integer", (long long)b,
                           cornu_type_print(&text, type));
    }
    return g->windowed ? begin_windows(g, primes, to) : begin_without(g, primes, to);
}

CornuStatus cornu_generator_begin(CornuTokenGenerator *g, const CornuArray *primes, CornuArray to)
{
    CORNU__NEED(g);
    CORNU__NEED(primes);
    CORNU__WITHIN(g->model, "cornu_generator_begin", begin(g, primes, to));
}

static CornuStatus next(CornuTokenGenerator *g, CornuArray tokens, CornuArray to)
{
    CornuText text;
    CORNU__TRY(check_arrays(g, to));
    if (!tokens.data || cornu_dtype_is_float(tokens.type.dtype) ||
        !cornu_shape_equal(tokens.type.shape, cornu_shape(g->batch)))
        return cornu__fail(CORNU_ERR_SHAPE, "cornu_generator: the next tokens are %s, expected "
                           "%lld integers", cornu_type_print(&text, tokens.type),
                           (long long)g->batch);
    for (int64_t b = 0; b < g->batch; b++) {
        if (g->filled[b] == 0 && g->windowed)
            return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_generator_next: no sequence has begun, "
                               "expected cornu_generator_begin before");
        if (cornu_array_get(tokens, b) == -1.0) g->tokens[b] = -1;
        else CORNU__TRY(read_token(tokens, b, &g->tokens[b]));
        g->count[b] = g->tokens[b] >= 0;
    }
    if (g->windowed) return next_in_windows(g, to);
    for (int64_t b = 0; b < g->batch; b++)
        if (g->tokens[b] < 0) g->tokens[b] = 0;
    return run(g, 1, false, to);
}

CornuStatus cornu_generator_next(CornuTokenGenerator *g, CornuArray tokens, CornuArray to)
{
    CORNU__NEED(g);
    CORNU__WITHIN(g->model, "cornu_generator_next", next(g, tokens, to));
}
