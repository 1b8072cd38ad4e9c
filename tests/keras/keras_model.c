/*
 * What a user does with a model from a file, for scripts that compare it with other programs:
 *
 *     keras_model MODEL IN.npz OUT.npz [--device cpu] [--uncompiled] [--steps 3]
 *                 [--save-first PATH]... [--save PATH]...
 *
 * Loads the model, compiled unless told otherwise, saves it to each --save-first PATH, predicts
 * x0, x1, … of IN.npz, trains `steps` times on the batch (x*, y*), with sample weights s* if there
 * are any, predicts again and saves it to each --save PATH. IN.npz may have p0, p1, …: arrays of
 * the shapes to expect, which a model with outputs of unknown extents needs. OUT.npz gets
 *
 *     p0, p1, …    the predictions              q0, q1, …   those after the steps
 *     v0, v1, …    the weights, before          w0, w1, …   and after them
 *     u0, u1, …    the optimizer's variables    o0, o1, …   likewise
 *     l0, l1, …    the logs of each step, f64; their names are printed in a line "logs: …"
 *
 * Returns 0; 3 if something is unsupported and 1 for any other error, with a message that begins
 * with what failed.
 */
#include "../../nn/cornu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = CORNU_MAX_MODEL_TENSORS, PATHS = 8 };

typedef struct {
    const char *model, *in, *out, *device;
    const char *first[PATHS], *last[PATHS];
    int         firsts, lasts, steps;
    bool        uncompiled;
} Options;

static int usage(void)
{
    fprintf(stderr, "usage: keras_model MODEL IN.npz OUT.npz [--device cpu] [--uncompiled] "
                    "[--steps 3] [--save-first PATH]... [--save PATH]...\n");
    return 2;
}

static bool read_options(int argc, char **argv, Options *options)
{
    *options = (Options){ .device = "cpu", .steps = 0 };
    const char **plain[] = { &options->model, &options->in, &options->out };
    int          given = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(word, "--uncompiled")) options->uncompiled = true;
        else if (strncmp(word, "--", 2) && given < 3) *plain[given++] = word;
        else if (!value) return false;
        else if (!strcmp(word, "--device")) options->device = argv[++i];
        else if (!strcmp(word, "--steps")) options->steps = atoi(argv[++i]);
        else if (!strcmp(word, "--save-first") && options->firsts < PATHS)
            options->first[options->firsts++] = argv[++i];
        else if (!strcmp(word, "--save") && options->lasts < PATHS)
            options->last[options->lasts++] = argv[++i];
        else return false;
    }
    return given == 3;
}

/* Prints what failed, and why. */
static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, cornu_error_message());
    return cornu_error_status() == CORNU_ERR_UNSUPPORTED ? 3 : 1;
}

/* ---- Arrays ---- */

/* What OUT.npz gets. */
typedef struct {
    CornuNamedArray *arrays;
    int              count, space;
} Out;

/* Appends an array named by a letter and a number; NULL when out of memory. */
static CornuArray *append(Out *out, char letter, int number, CornuType type)
{
    if (out->count == out->space) {
        out->space = 2 * out->space + 64;
        CornuNamedArray *grown = realloc(out->arrays, (size_t)out->space * sizeof *grown);
        if (!grown) return NULL;
        out->arrays = grown;
    }
    char *name = malloc(16);
    void *data = calloc(cornu_type_bytes(type) + 1, 1);
    if (!name || !data) return free(name), free(data), NULL;
    snprintf(name, 16, "%c%d", letter, number);
    CornuNamedArray *made = &out->arrays[out->count++];
    made->name = name;
    made->array = cornu_array_from(data, type);
    return &made->array;
}

/* The arrays letter0, letter1, … of a file, copied: they may be unaligned there. Returns their
 * number. */
static int collect(const CornuNpz *file, char letter, CornuArray arrays[MOST])
{
    int count = 0;
    for (; count < MOST; count++) {
        char name[16];
        snprintf(name, sizeof name, "%c%d", letter, count);
        const CornuNamedArray *found = cornu_npz_find(file, name);
        if (!found) break;
        const size_t bytes = cornu_type_bytes(found->array.type);
        arrays[count] = found->array;
        if (!(arrays[count].data = malloc(bytes + 1))) return -1;
        memcpy(arrays[count].data, found->array.data, bytes);
    }
    return count;
}

/* ---- The model ---- */

typedef struct {
    CornuModel *model;
    CornuArray  x[MOST], y[MOST], s[MOST], p[MOST];
    int         xs, ys, ss, ps;
    Out         out;
} Run;

static CornuStatus put_weights(Run *run, char letter)
{
    for (int i = 0; i < cornu_model_weight_count(run->model); i++) {
        CornuWeight *weight = cornu_model_weight(run->model, i);
        CornuArray  *to = append(&run->out, letter, i, weight->type);
        CornuStatus  status = to ? cornu_weight_read(weight, *to) : CORNU_ERR_MEMORY;
        if (status) return status;
    }
    return CORNU_OK;
}

static CornuStatus put_variables(Run *run, char letter)
{
    for (int i = 0; i < cornu_model_optimizer_variable_count(run->model); i++) {
        const CornuVariable *variable = cornu_model_optimizer_variable(run->model, i);
        CornuArray *to = append(&run->out, letter, i, cornu_variable_type(variable));
        CornuStatus status = to ? cornu_variable_read(variable, *to) : CORNU_ERR_MEMORY;
        if (status) return status;
    }
    return CORNU_OK;
}

/* The shape of output i, which the expected one completes. */
static CornuShape output_shape(const Run *run, int i)
{
    if (i < run->ps) return run->p[i].type.shape;
    CornuShape shape = cornu_symbol_shape(cornu_model_output(run->model, i));
    shape.extent[0] = run->x[0].type.shape.extent[0];
    return shape;
}

static CornuStatus predict(Run *run, char letter)
{
    CornuArray to[MOST];
    for (int i = 0; i < cornu_model_output_count(run->model); i++) {
        const CornuType   type = { CORNU_F32, output_shape(run, i) };
        const CornuArray *made = append(&run->out, letter, i, type);
        if (!made) return CORNU_ERR_MEMORY;
        to[i] = *made;
    }
    return cornu_predict_on_batch_many(run->model, run->x, to);
}

static CornuStatus train(Run *run, int step)
{
    const CornuType type = { CORNU_F64, cornu_shape(cornu_model_metric_count(run->model)) };
    CornuArray     *logs = append(&run->out, 'l', step, type);
    if (!logs) return CORNU_ERR_MEMORY;
    if (run->ss == 0)
        return cornu_train_on_batch_many(run->model, run->x, run->y, logs->data);
    return cornu_train_on_batch(run->model, run->x[0], run->y[0], logs->data,
                                .sample_weight = run->s[0]);
}

static CornuModel *load(const Options *options, CornuDevice *device)
{
    if (!options->uncompiled) return cornu_model_load_compiled(options->model, device);
    CornuModel *model = cornu_model_load(options->model);
    if (!model || !cornu_compile(model, .device = device)) return model;
    cornu_model_free(model);
    return NULL;
}

/* The suffixes of weights alone choose those. */
static CornuStatus save(CornuModel *model, const char *path)
{
    const char *dot = strrchr(path, '.');
    if (strstr(path, ".weights.") || (dot && !strcmp(dot, ".npz")))
        return cornu_model_save_weights(model, path);
    return cornu_model_save(model, path);
}

static int use(const Options *options, Run *run)
{
    for (int i = 0; i < options->firsts; i++)
        if (save(run->model, options->first[i])) return failed(options->first[i]);
    if (put_weights(run, 'v')) return failed("weights");
    if (predict(run, 'p')) return failed("predict");
    if (put_variables(run, 'u')) return failed("optimizer");
    printf("logs:");
    for (int i = 0; i < cornu_model_metric_count(run->model); i++)
        printf(" %s", cornu_model_metric_name(run->model, i));
    printf("\n");
    for (int i = 0; i < options->steps; i++)
        if (train(run, i)) return failed("train");
    if (options->steps > 0) {
        if (predict(run, 'q')) return failed("predict");
        if (put_weights(run, 'w')) return failed("weights");
        if (put_variables(run, 'o')) return failed("optimizer");
    }
    for (int i = 0; i < options->lasts; i++)
        if (save(run->model, options->last[i])) return failed(options->last[i]);
    if (cornu_npz_write(options->out, run->out.arrays, run->out.count))
        return failed(options->out);
    return 0;
}

int main(int argc, char **argv)
{
    Options options;
    Run     run = { 0 };
    int     result;
    if (!read_options(argc, argv, &options)) return usage();
    CornuDevice *device = cornu_device_open(options.device);
    if (!device) return failed(options.device);
    CornuNpz *in = cornu_npz_open(options.in);
    if (!in) return failed(options.in);
    run.xs = collect(in, 'x', run.x);
    run.ys = collect(in, 'y', run.y);
    run.ss = collect(in, 's', run.s);
    run.ps = collect(in, 'p', run.p);
    cornu_npz_close(in);
    run.model = load(&options, device);
    if (!run.model) {
        result = failed("load");
    } else if (run.xs != cornu_model_input_count(run.model)) {
        fprintf(stderr, "data: %d inputs, expected %d\n", run.xs,
                cornu_model_input_count(run.model));
        result = 1;
    } else {
        result = use(&options, &run);
    }
    cornu_model_free(run.model);
    cornu_device_close(device);
    for (int i = 0; i < MOST; i++) {
        free(run.x[i].data);
        free(run.y[i].data);
        free(run.s[i].data);
        free(run.p[i].data);
    }
    for (int i = 0; i < run.out.count; i++) {
        free((char *)run.out.arrays[i].name);
        free(run.out.arrays[i].array.data);
    }
    free(run.out.arrays);
    return result;
}
