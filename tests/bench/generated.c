/* Models as C source (nn/c_source), compiled here by `cc -O3 -march=native` (CC is another compiler
 * with its flags), beside the library on one thread: a prediction of one row and a training step.
 * Both read the same floats, and their numbers are compared before they are timed. Steps learn next
 * to nothing, unless their rate follows a schedule, so that gradients of the one batch do not
 * vanish. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../models/models.h"
#include "../../nn/cornu.h"
#include "bench.h"
#include "subject.h"

enum { STEP_ROWS = 32, MODELS = 4, CASES = 4 };

/* Functions of fixed names around those of the model, with its memory. */
static const char shim[] =
    "#include \"m.h\"\n"
    "static union { double d; unsigned char of[M_SCRATCH_BYTES]; } one;\n"
    "static union { double d; unsigned char of[M_STEP_SCRATCH_BYTES]; } step;\n"
    "static m_state state;\n"
    "void shim_init(void) { m_init(&state); }\n"
    "void shim_predict(const void *x, void *y) { m_predict(&state.weights, &one, x, y); }\n"
    "void shim_step(const void *x, const void *y) { m_step(&state, &step, x, y); }\n";

typedef struct {
    char            folder[64];
    void           *library;
    void          (*predict)(const void *x, void *y);
    void          (*step)(const void *x, const void *y);
    Subject         subject;
    CornuPredictor *predictor;
    CornuArray      x;               /* f32: STEP_ROWS rows, of which predictions have the first */
    CornuArray      to, from;        /* of the library and of the source */
} Pair;

static CornuStatus predict_library(void *context)
{
    const Pair *pair = context;
    CornuArray  row = pair->x;
    row.type.shape.extent[0] = 1;
    return cornu_predictor_predict(pair->predictor, &row, &pair->to);
}

static CornuStatus predict_source(void *context)
{
    const Pair *pair = context;
    pair->predict(pair->x.data, pair->from.data);
    return CORNU_OK;
}

static CornuStatus step_source(void *context)
{
    const Pair *pair = context;
    pair->step(pair->x.data, pair->subject.y.data);
    return CORNU_OK;
}

static CornuStatus step_library(void *context)
{
    Pair *pair = context;
    return subject_train(&pair->subject);
}

static CornuStatus run(const char *command)
{
    if (system(command) == 0) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_UNSUPPORTED, "failed: %s", command);
}

static CornuStatus find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found ? CORNU_OK : cornu_error_set(CORNU_ERR_FILE, "%s", dlerror());
}

static CornuStatus compile(Pair *pair)
{
    char        path[96], command[512];
    const char *compiler = getenv("CC");
    void      (*init)(void);
    strcpy(pair->folder, "/tmp/cornu-bench-XXXXXX");
    if (!mkdtemp(pair->folder)) return cornu_error_set(CORNU_ERR_FILE, "no folder in /tmp");
    snprintf(path, sizeof path, "%s/m.c", pair->folder);
    CornuStatus status = cornu_compile_to_c(pair->subject.model, path, .train = true,
                                            .batch_size = STEP_ROWS);
    if (status) return status;
    snprintf(path, sizeof path, "%s/shim.c", pair->folder);
    FILE *file = fopen(path, "w");
    if (!file || fputs(shim, file) < 0 || fclose(file))
        return cornu_error_set(CORNU_ERR_FILE, "%s cannot be written", path);
    snprintf(command, sizeof command, "cd %s && %s -shared -fPIC m.c shim.c -o m.so -lm",
             pair->folder, compiler ? compiler : "cc -O3 -march=native");
    if ((status = run(command))) return status;
    snprintf(path, sizeof path, "%s/m.so", pair->folder);
    if (!(pair->library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        return cornu_error_set(CORNU_ERR_FILE, "%s", dlerror());
    if (!status) status = find(pair->library, "shim_init", &init);
    if (!status) status = find(pair->library, "shim_predict", &pair->predict);
    if (!status) status = find(pair->library, "shim_step", &pair->step);
    if (!status) init();
    return status;
}

static CornuStatus make_floats(Pair *pair)
{
    CornuType      type = pair->subject.x.type;
    const uint8_t *from = pair->subject.x.data;
    type.dtype = CORNU_F32;
    float *data = malloc(cornu_type_bytes(type));
    pair->x = cornu_array_from(data, type);
    CornuType to = cornu_type_from(CORNU_F32, cornu_model_output_shape(pair->subject.model));
    to.shape.extent[0] = 1;
    pair->to = cornu_array_from(malloc(cornu_type_bytes(to)), to);
    pair->from = cornu_array_from(malloc(cornu_type_bytes(to)), to);
    if (!data || !pair->to.data || !pair->from.data)
        return cornu_error_set(CORNU_ERR_MEMORY, "no memory for rows");
    for (int64_t i = 0; i < cornu_type_count(type); i++) data[i] = (float)from[i] / 255.0f;
    return CORNU_OK;
}

/* The greatest difference of the outputs for one row. */
static CornuStatus compare(Pair *pair, double *difference)
{
    const float *a = pair->to.data, *b = pair->from.data;
    CornuStatus  status = predict_library(pair);
    if (!status) status = predict_source(pair);
    *difference = 0.0;
    for (int64_t i = 0; !status && i < cornu_type_count(pair->to.type); i++)
        *difference = fmax(*difference, fabs((double)a[i] - (double)b[i]));
    return status;
}

static CornuStatus open_pair(Pair *pair, const char *model)
{
    CornuStatus status = subject_open(&pair->subject, &(SubjectConfig){
        .model = model, .device = "cpu", .batch = STEP_ROWS, .threads = 1 });
    if (!status && cornu_optimizer_set_learning_rate(cornu_model_optimizer(pair->subject.model),
                                                     1e-9))
        cornu_error_take();                   /* it follows a schedule */
    if (!status) status = make_floats(pair);
    if (!status) status = compile(pair);
    if (status) return status;
    free(pair->subject.x.data);
    pair->subject.x = pair->x;
    pair->predictor = cornu_predictor(pair->subject.model, .max_batch_size = 1, .threads = 1);
    return pair->predictor ? CORNU_OK : cornu_error_take();
}

static void close_pair(Pair *pair)
{
    char command[96];
    cornu_predictor_free(pair->predictor);
    subject_close(&pair->subject);            /* with x */
    free(pair->to.data), free(pair->from.data);
    if (pair->library) dlclose(pair->library);
    snprintf(command, sizeof command, "rm -rf %s", pair->folder);
    if (pair->folder[0] && system(command)) fprintf(stderr, "%s is left\n", pair->folder);
}

static CornuStatus measure(Bench *bench, const char *model)
{
    static BenchCase cases[CASES];
    Pair             pair = { .library = NULL };
    double           difference = 0.0;
    CornuStatus    (*const runs[CASES])(void *) = { predict_source, predict_library, step_source,
                                                    step_library };
    CornuStatus      status = open_pair(&pair, model);
    if (!status) status = compare(&pair, &difference);
    for (int i = 0; i < CASES; i++) cases[i] = (BenchCase){ .run = runs[i], .context = &pair };
    for (int i = 0; i < CASES && !status; i += 2)
        status = bench_alternate(&cases[i], 2, bench->seconds);
    for (int i = 0; i < CASES && !status; i += 2)
        json_array_append_new(bench_rows(bench, "generated"), json_pack(
            "{sssssIsfsfsfsfsf}", "model", model, "what", i ? "step" : "predict", "rows",
            (json_int_t)(i ? STEP_ROWS : 1), "ms", 1e3 * bench_quantile(&cases[i], 0.5), "cpu_ms",
            1e3 * cases[i].busy[cases[i].rounds / 2], "library_ms",
            1e3 * bench_quantile(&cases[i + 1], 0.5), "library_cpu_ms",
            1e3 * cases[i + 1].busy[cases[i + 1].rounds / 2], "difference", difference));
    close_pair(&pair);
    return status;
}

CornuStatus bench_generated(Bench *bench)
{
    static const char *const names[MODELS] = { "mnist_convnet", "mnist_cnn", "fashion_mnist_cnn",
                                               "mnist_cnn_bn" };
    CornuStatus              status = CORNU_OK;
    for (int i = 0; i < MODELS && !status; i++)
        if (bench_listed(bench->models, names[i])) status = measure(bench, names[i]);
    return status;
}

void bench_generated_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "generated");
    printf("\ngenerated: models as C source beside the library, one thread; the first predictions "
           "differ by\n  %-18s %-8s %5s %10s %10s %6s %11s\n", "model", "what", "rows",
           "median ms", "library ms", "ratio", "difference");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        printf("  %-18s %-8s %5.0f %10.4f %10.4f %6.2f %11.2g\n", bench_text(row, "model"),
               bench_text(row, "what"), bench_number(row, "rows"), bench_number(row, "ms"),
               bench_number(row, "library_ms"),
               bench_number(row, "cpu_ms") / bench_number(row, "library_cpu_ms"),
               bench_number(row, "difference"));
    }
}
