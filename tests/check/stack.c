#include "stack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/system/clock_internal.h"
#include "../../nn/training/training_internal.h"
#include "../../tensor/graph_internal.h"
#include "generator.h"
#include "stack_kinds.h"

/* ---- Layers ---- */

enum {
#define X(name, ...) KIND_##name,
    LAYER_KINDS(X) FIRST_MERGE, LAST_LAYER = FIRST_MERGE - 1, MERGE_KINDS(X) KIND_COUNT
#undef X
};

static const struct { const char *name, *code; } kinds[KIND_COUNT + 1] = {
#define X(name, ...) [KIND_##name] = { #name, #__VA_ARGS__ },
    LAYER_KINDS(X) MERGE_KINDS(X)
#undef X
};

static const char *const optimizers[] = {
#define X(...) #__VA_ARGS__,
    OPTIMIZERS(X)
#undef X
};
enum { OPTIMIZER_COUNT = sizeof optimizers / sizeof *optimizers };

static CornuOptimizer *make_optimizer(int number)
{
    int i = 0;
#define X(...) if (i++ == number) return __VA_ARGS__;
    OPTIMIZERS(X)
#undef X
    return NULL;
}

const char *stack_optimizer(const Stack *stack) { return optimizers[stack->optimizer]; }
int         stack_kind_count(void) { return KIND_COUNT; }
const char *stack_kind_name(int kind) { return kinds[kind].name; }

static CornuLayer *make_layer(const StackLayer *layer)
{
    const int64_t         n = layer->n, k = layer->k, s = layer->s;
    const CornuActivation act = layer->act;
    const CornuPadding    pad = layer->pad;
    const bool            flag = layer->flag, more = layer->more;
    switch (layer->kind) {
#define X(name, ...) case KIND_##name: return __VA_ARGS__;
        LAYER_KINDS(X) MERGE_KINDS(X)
#undef X
    default: return NULL;
    }
}

/* ---- Models ---- */

/* What layer i is called on, or NULL with a pending error. */
static CornuSymbol *call_layer(const StackLayer *layer, CornuSymbol *const *symbols)
{
    CornuSymbol *x = symbols[layer->from], *y = symbols[layer->other];
    if (layer->kind >= FIRST_MERGE) return cornu_call(make_layer(layer), x, y);
    return cornu_call(make_layer(layer), x);
}

static CornuSymbol *input_symbol(const Stack *stack)
{
    CornuInputConfig config = { .dtype = stack->whole ? CORNU_I32 : CORNU_F32 };
    for (int i = 0; i < 4; i++) config.shape[i] = stack->input[i];
    return cornu_input_from(&config);
}

/* The model, not compiled; NULL with a pending error. */
static CornuModel *build(const Stack *stack)
{
    CornuSymbol *symbols[STACK_LAYERS + 1];
    cornu_set_random_seed(stack->seed);
    symbols[0] = input_symbol(stack);
    for (int i = 0; i < stack->count; i++) symbols[i + 1] = call_layer(&stack->layers[i], symbols);
    CornuModel *model = cornu_model(.inputs = { symbols[0] }, .outputs = { symbols[stack->count] },
                                    .policy = "float32");
    if (!model) cornu_clear_session();
    return model;
}

static CornuStatus compile_for(CornuModel *model, const Stack *stack, CornuDevice *device)
{
    return cornu_compile(model, .optimizer = make_optimizer(stack->optimizer),
                         .loss = cornu_loss(stack->loss), .device = device);
}

/* ---- Data ---- */

typedef struct { CornuArray x, y, to; } Data;

static CornuArray array_of(CornuDtype dtype, CornuShape shape, int64_t batch)
{
    CornuType type = { dtype, shape };
    type.shape.extent[0] = batch;
    return cornu_array_from(calloc((size_t)cornu_type_count(type) + 1, 8), type);
}

static Data data_of(const Stack *stack, const CornuModel *model)
{
    uint64_t     state = stack->seed;
    CornuShape   out = cornu_model_output_shape(model), labels = out;
    const bool   sparse = !strncmp(stack->loss, "sparse", 6) ||
                          !strcmp(stack->loss, "categorical_generalized_cross_entropy");
    const int64_t classes = out.extent[out.rank - 1];
    if (sparse) labels.rank--;
    Data d = {
        .x = array_of(stack->whole ? CORNU_I32 : CORNU_F32, cornu_model_input_shape(model),
                      stack->batch),
        .y = array_of(sparse ? CORNU_I32 : CORNU_F32, labels, stack->batch),
        .to = array_of(CORNU_F32, out, stack->batch),
    };
    for (int64_t i = 0; i < cornu_type_count(d.x.type); i++) {
        const double real = (double)(pick(&state, 4001) - 2000) / 1000.0;
        cornu_array_set(d.x, i, stack->whole ? (double)pick(&state, 5) : real);
    }
    /* Rows that end in zeros, which Masking and the like skip; never whole rows. */
    const int64_t steps = d.x.type.shape.rank > 1 ? d.x.type.shape.extent[1] : 1;
    const int64_t inner = cornu_type_count(d.x.type) / (stack->batch * steps);
    for (int64_t b = 1; b < stack->batch && steps > 1; b += 2)
        for (int64_t t = 1 + pick(&state, steps); t < steps; t++)
            for (int64_t i = 0; i < inner; i++)
                cornu_array_set(d.x, (b * steps + t) * inner + i, 0.0);
    for (int64_t i = 0; i < cornu_type_count(d.y.type); i++)
        cornu_array_set(d.y, i, sparse ? (double)pick(&state, classes)
                                       : (double)pick(&state, 1001) / 1000.0);
    return d;
}

static void data_free(Data *d)
{
    free(d->x.data);
    free(d->y.data);
    free(d->to.data);
}

static int64_t count_of(CornuArray array) { return cornu_type_count(array.type); }

/* ---- What is expected ---- */

typedef struct {
    double *value, *bound;
} Numbers;

/* The program of a step recorded on the reference device, and the elements of its inputs: from the
 * model's variables, or as `known` gives them by buffer. */
typedef struct {
    const CornuProgram *program;
    CornuBuffer *const *buffers;
    double            **value, **bound;
} StepProgram;

static double *read_buffer(const CornuBuffer *buffer)
{
    const CornuType type = cornu_buffer_type(buffer);
    CornuArray      array = cornu_array_from(calloc((size_t)cornu_type_count(type) + 1, 8), type);
    double         *to = calloc((size_t)cornu_type_count(type) + 1, sizeof *to);
    cornu_buffer_read(buffer, array);
    for (int64_t i = 0; i < cornu_type_count(type); i++) to[i] = cornu_array_get(array, i);
    free(array.data);
    return to;
}

static CornuStatus open_step(CornuModel *model, CornuStepMode mode, const Data *d, StepProgram *p)
{
    CornuStep         *step;
    const CornuArrays  arrays = { .x = &d->x, .y = mode == CORNU_STEP_TRAIN ? &d->y : NULL };
    CORNU__TRY(cornu__step(model, mode, &arrays, &step));
    CORNU__TRY(cornu__step_feed(step, &arrays, d->x.type.shape.extent[0]));
    const CornuPrepared *prepared = step->graph->last;
    const int            inputs = prepared->program->input_count;
    *p = (StepProgram){ prepared->program, prepared->inputs,
                        calloc((size_t)inputs + 1, sizeof *p->value),
                        calloc((size_t)inputs + 1, sizeof *p->bound) };
    for (int i = 0; i < inputs; i++) {
        p->value[i] = read_buffer(prepared->inputs[i]);
        p->bound[i] = calloc((size_t)cornu_type_count(cornu_buffer_type(prepared->inputs[i])) + 1,
                             sizeof(double));
    }
    return CORNU_OK;
}

static void close_step(StepProgram *p)
{
    for (int i = 0; p->program && i < p->program->input_count; i++) {
        free(p->value[i]);
        free(p->bound[i]);
    }
    free(p->value);
    free(p->bound);
}

/* Runs the step's program: variables get their new values and bounds. */
static CornuStatus run_step(StepProgram *p)
{
    Bounds b;
    CORNU__TRY(bounds_of(&b, p->program, 1, p->value, p->bound));
    for (int i = 0; i < p->program->output_count; i++) {
        const CornuProgramOutput *output = &p->program->outputs[i];
        if (output->alias < 0) continue;
        const size_t bytes = sizeof(double) *
                             (size_t)bounds_count(&b, p->program, output->value);
        memcpy(p->value[output->alias], b.value[output->value], bytes);
        memcpy(p->bound[output->alias], b.bound[output->value], bytes);
    }
    bounds_free(&b);
    return CORNU_OK;
}

static CornuStatus predicted(const StepProgram *p, Numbers *to)
{
    Bounds b;
    CORNU__TRY(bounds_of(&b, p->program, 1, p->value, p->bound));
    for (int i = 0; i < p->program->output_count; i++) {
        const CornuValue v = p->program->outputs[i].value;
        if (p->program->outputs[i].alias >= 0) continue;
        const size_t bytes = sizeof(double) * (size_t)bounds_count(&b, p->program, v);
        memcpy(to->value, b.value[v], bytes);
        memcpy(to->bound, b.bound[v], bytes);
    }
    bounds_free(&b);
    return CORNU_OK;
}

/* The variables that both steps share, after training. */
static void carry_over(const StepProgram *from, StepProgram *to)
{
    for (int i = 0; i < to->program->input_count; i++)
        for (int k = 0; k < from->program->input_count; k++)
            if (to->buffers[i] == from->buffers[k]) {
                const size_t bytes = sizeof(double) *
                    (size_t)cornu_type_count(cornu_buffer_type(to->buffers[i]));
                memcpy(to->value[i], from->value[k], bytes);
                memcpy(to->bound[i], from->bound[k], bytes);
            }
}

/* Predictions before and after training, with their bounds. */
static CornuStatus expect(const Stack *stack, Numbers expected[2])
{
    bounds_roots_of_squares = true;
    CornuDevice *device = cornu_device_open("reference");
    CornuModel  *model = build(stack);
    CornuStatus  status = model ? compile_for(model, stack, device) : cornu_error_take();
    StepProgram  train = { 0 }, predict = { 0 };
    if (!status) {
        Data         d = data_of(stack, model);
        const size_t count = (size_t)count_of(d.to) + 1;
        for (int i = 0; i < 2; i++)
            expected[i] = (Numbers){ calloc(count, sizeof(double)), calloc(count, sizeof(double)) };
        status = open_step(model, CORNU_STEP_TRAIN, &d, &train);
        if (!status) status = open_step(model, CORNU_STEP_PREDICT, &d, &predict);
        if (!status) status = predicted(&predict, &expected[0]);
        for (int i = 0; i < STACK_STEPS && !status; i++) status = run_step(&train);
        if (!status) carry_over(&train, &predict);
        if (!status) status = predicted(&predict, &expected[1]);
        close_step(&train);
        close_step(&predict);
        data_free(&d);
    }
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

bool stack_trial(const Stack *stack, Trial *trial)
{
    CornuDevice *device = cornu_device_open("reference");
    CornuModel  *model = build(stack);
    StepProgram  train = { 0 };
    bool         done = model && compile_for(model, stack, device) == CORNU_OK;
    if (done) {
        Data d = data_of(stack, model);
        done = open_step(model, CORNU_STEP_TRAIN, &d, &train) == CORNU_OK;
        if (done) {
            const size_t inputs = (size_t)train.program->input_count;
            *trial = (Trial){ .program = cornu_program_copy(train.program), .shards = 1,
                              .input = train.value, .input_space = (int)inputs };
            train.value = calloc(inputs + 1, sizeof *train.value);
        }
        close_step(&train);
        data_free(&d);
    }
    cornu_error_take();
    cornu_model_free(model);
    cornu_device_close(device);
    return done;
}

/* ---- Trying one ---- */

static void compare(Verdict *verdict, const char *when, CornuArray got, const Numbers *expected)
{
    for (int64_t i = 0; i < count_of(got); i++) {
        const double x = cornu_array_get(got, i), value = expected->value[i];
        const double bound = expected->bound[i];
        trial_counts.compared++;
        trial_counts.unbounded += !isfinite(bound);
        if (!isfinite(bound) || x == value || verdict->failed || isnan(value)) continue;
        if (fabs(x - value) <= bound + 1e-7 * fabs(value)) continue;
        verdict->failed = true;
        snprintf(verdict->message, sizeof verdict->message, "prediction %lld %s: %.9g, expected "
                 "%.9g within %.2g", (long long)i, when, x, value, bound);
    }
}

static CornuStatus run_on(const Stack *stack, const Setting *setting, const Numbers *expected,
                          Verdict *verdict)
{
    setenv("CORNU_ISA", cornu__isa_name(setting->isa), 1);
    setenv("CORNU_VERIFY", "1", 1);
    const bool   tpu = !strcmp(setting->device, "tpu");
    CornuDevice *device = cornu_device_open(.name = setting->device, .threads = setting->threads,
                                            .shards = tpu ? stack->shards : 1);
    if (!device) return cornu_error_take();
    CornuModel *model = build(stack);
    CornuStatus status = model ? compile_for(model, stack, device) : cornu_error_take();
    if (!status) {
        Data d = data_of(stack, model);
        status = cornu_predict_on_batch(model, d.x, d.to);
        if (!status) compare(verdict, "before training", d.to, &expected[0]);
        for (int i = 0; i < STACK_STEPS && !status; i++)
            status = cornu_train_on_batch(model, .x = d.x, .y = d.y);
        if (!status) status = cornu_predict_on_batch(model, d.x, d.to);
        if (!status) compare(verdict, "after training", d.to, &expected[1]);
        data_free(&d);
    }
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

Verdict stack_run_here(const Stack *stack, const Setting *setting)
{
    Verdict verdict = { .output = -1 };
    Numbers expected[2] = { { NULL, NULL }, { NULL, NULL } };
    verdict.unusable = expect(stack, expected) != CORNU_OK;
    cornu_error_take();
    if (!verdict.unusable) {
        const CornuStatus status = run_on(stack, setting, expected, &verdict);
        if (status && !verdict.failed) {
            verdict.failed = true;
            snprintf(verdict.message, sizeof verdict.message, "%s: %s", cornu_status_name(status),
                     cornu_error_message());
            cornu_error_take();
        }
    }
    for (int i = 0; i < 2; i++) { free(expected[i].value); free(expected[i].bound); }
    return verdict;
}

static Verdict attempt(const void *stack, const Setting *setting)
{
    return stack_run_here(stack, setting);
}

Verdict stack_run(const Stack *stack, const Setting *setting)
{
    return attempt_apart(attempt, stack, setting);
}

void stack_guilty(const Stack *stack, const Setting *setting, char *text, size_t size)
{
    guilty_passes(attempt, stack, setting, text, size);
}

/* ---- Making one ---- */

static StackLayer random_layer(uint64_t *state, const Stack *stack)
{
    const int count = stack->count;
    return (StackLayer){
        .kind = (int)pick(state, KIND_COUNT),
        .from = pick(state, 10) < 8 ? count : (int)pick(state, count + 1),
        .other = (int)pick(state, count + 1),
        .n = 1 + pick(state, 9), .k = 1 + pick(state, 3), .s = 1 + pick(state, 2),
        .act = (CornuActivation)pick(state, CORNU_ACTIVATION_COUNT),
        .pad = pick(state, 2) ? CORNU_SAME : CORNU_VALID,
        .flag = pick(state, 2), .more = pick(state, 2),
    };
}

static int64_t elements(CornuShape shape)
{
    shape.extent[0] = 1;
    return cornu_shape_count(shape);
}

static bool has_kind(const Stack *stack, int kind)
{
    for (int i = 0; i < stack->count; i++)
        if (stack->layers[i].kind == kind) return true;
    return false;
}

/* Removes layers that the last one does not depend on. */
static void drop_unused(Stack *stack)
{
    bool used[STACK_LAYERS + 1] = { false };
    int  place[STACK_LAYERS + 1] = { 0 }, count = 0;
    used[stack->count] = true;
    for (int i = stack->count; i > 0; i--) {
        const StackLayer *layer = &stack->layers[i - 1];
        if (!used[i]) continue;
        used[layer->from] = true;
        if (layer->kind >= FIRST_MERGE) used[layer->other] = true;
    }
    for (int i = 1; i <= stack->count; i++) {
        if (!used[i]) continue;
        StackLayer layer = stack->layers[i - 1];
        layer.from = place[layer.from];
        layer.other = layer.kind >= FIRST_MERGE ? place[layer.other] : 0;
        stack->layers[count] = layer;
        place[i] = ++count;
    }
    stack->count = count;
}

/* The loss for a last layer: logarithms need probabilities. */
static CornuActivation usual_activation(const char *loss)
{
    if (strstr(loss, "binary") || !strcmp(loss, "poisson")) return CORNU_SIGMOID;
    if (strstr(loss, "categorical_") || strstr(loss, "kl_")) return CORNU_SOFTMAX;
    return CORNU_LINEAR;
}

/* Whether there is a weight to train. */
static bool trains(const Stack *stack)
{
    CornuModel *model = stack->count ? build(stack) : NULL;
    const bool  some = model && cornu_model_trainable_parameters(model) > 0;
    cornu_error_take();
    cornu_model_free(model);
    return some;
}

bool stack_generate(uint64_t seed, Stack *stack)
{
    static const char *const losses[] = {
        "mean_squared_error", "mean_absolute_error", "huber", "log_cosh", "poisson",
        "mean_squared_logarithmic_error", "binary_crossentropy", "categorical_crossentropy",
        "sparse_categorical_crossentropy", "kl_divergence", "hinge", "squared_hinge",
        "categorical_hinge", "cosine_similarity", "mean_absolute_percentage_error",
        "binary_focal_crossentropy", "categorical_focal_crossentropy",
        "categorical_generalized_cross_entropy", "tversky", "dice",
    };
    static const int shards[] = { 1, 1, 2, 4, 8 };
    uint64_t         state = seed;
    CornuSymbol     *symbols[STACK_LAYERS + 1];
    *stack = (Stack){ .seed = seed, .batch = 2 + pick(&state, 5), .whole = pick(&state, 6) == 0,
                      .optimizer = (int)pick(&state, OPTIMIZER_COUNT),
                      .loss = losses[pick(&state, sizeof losses / sizeof *losses)] };
    const int rank = stack->whole ? 1 : 1 + (int)pick(&state, 3);
    for (int i = 0; i < rank; i++) stack->input[i] = 1 + pick(&state, i + 1 < rank ? 8 : 5);
    cornu_set_random_seed(seed);
    symbols[0] = input_symbol(stack);
    const int wanted = 1 + (int)pick(&state, 8);
    for (int tries = 0; tries < 200 && stack->count < wanted; tries++) {
        StackLayer layer = random_layer(&state, stack);
        /* Whole numbers are only looked up: reals would be truncated. */
        if ((layer.kind == KIND_embedding) != (stack->whole && layer.from == 0)) continue;
        /* Without the batch these take one image, whose rows the batch would be. */
        if (layer.kind >= KIND_random_flip && layer.kind <= KIND_random_rotation &&
            cornu_symbol_shape(symbols[layer.from]).rank < 4)
            continue;
        CornuSymbol *y = call_layer(&layer, symbols);
        if (!y || elements(cornu_symbol_shape(y)) > 400 || elements(cornu_symbol_shape(y)) < 1) {
            cornu_error_take();
            continue;
        }
        stack->layers[stack->count++] = layer;
        symbols[stack->count] = y;
    }
    cornu_clear_session();
    drop_unused(stack);
    if (stack->count < STACK_LAYERS && (pick(&state, 2) || !trains(stack))) {
        stack->layers[stack->count] = (StackLayer){
            .kind = KIND_dense, .from = stack->count, .n = 1 + pick(&state, 5), .k = 1, .s = 1,
            .act = pick(&state, 4) ? usual_activation(stack->loss)
                                   : (CornuActivation)pick(&state, CORNU_ACTIVATION_COUNT),
        };
        stack->count++;
    }
    stack->shards = shards[pick(&state, 5)];
    const StackLayer *last = &stack->layers[stack->count > 0 ? stack->count - 1 : 0];
    const bool        softmax = last->kind == KIND_dense && last->act == CORNU_SOFTMAX;
    /* Each shard normalizes its own rows, and clips its own gradients. A power of what is below 0
     * is NaN, and may be in a row that fills up a shard alone, which has noise of its own. */
    if (stack->shards > stack->batch ||
        (!strcmp(stack->loss, "categorical_generalized_cross_entropy") && !softmax) ||
        has_kind(stack, KIND_batch_normalization) ||
        strstr(stack_optimizer(stack), "clip"))
        stack->shards = 1;
    return stack->count > 0;
}

bool stack_setting(const Stack *stack, int i, Setting *setting)
{
    uint64_t  state = stack->seed ^ 0x5e771465u;
    const int isas = (int)cornu__cpu()->best + 1;
    const Setting settings[] = {
        { "cpu", (CornuIsa)pick(&state, isas), 1 + (int)pick(&state, 4) },
        { "tpu", (CornuIsa)pick(&state, isas), 1 + (int)pick(&state, 4) },
    };
    if (i >= (int)(sizeof settings / sizeof *settings)) return false;
    *setting = settings[i];
    return true;
}

/* ---- Shrinking ---- */

typedef struct {
    Stack         *stack;
    const Setting *setting;
    double         end;
    bool           got_smaller;
} Shrinker;

static bool accept(Shrinker *s, Stack other)
{
    drop_unused(&other);
    if (other.count == 0 || cornu__seconds() > s->end || !stack_run(&other, s->setting).failed)
        return false;
    *s->stack = other;
    return s->got_smaller = true;
}

/* Readers of layer i read its operand instead. */
static Stack without(const Stack *stack, int i)
{
    Stack     other = *stack;
    const int instead = stack->layers[i].from;
    for (int k = 0; k < stack->count; k++) {
        StackLayer *layer = &other.layers[k];
        if (layer->from == i + 1) layer->from = instead;
        if (layer->other == i + 1) layer->other = instead;
    }
    if (i + 1 == stack->count) other.count = instead;
    return other;
}

static void plainer_layer(Shrinker *s, int i)
{
    const StackLayer plain = { .n = 1, .k = 1, .s = 1, .act = CORNU_LINEAR };
    for (int field = 0; field < 7 && i < s->stack->count; field++) {
        Stack       other = *s->stack;
        StackLayer *layer = &other.layers[i];
        const StackLayer before = *layer;
        switch (field) {
        case 0: layer->n = plain.n; break;
        case 1: layer->k = plain.k; break;
        case 2: layer->s = plain.s; break;
        case 3: layer->act = plain.act; break;
        case 4: layer->pad = plain.pad; break;
        case 5: layer->flag = plain.flag; break;
        default: layer->more = plain.more; break;
        }
        if (memcmp(layer, &before, sizeof before) != 0) accept(s, other);
    }
}

void stack_shrink(Stack *stack, const Setting *setting, double seconds)
{
    Shrinker s = { stack, setting, cornu__seconds() + seconds, true };
    while (s.got_smaller && cornu__seconds() < s.end) {
        s.got_smaller = false;
        for (int i = stack->count - 1; i >= 0; i--)
            if (i < stack->count) accept(&s, without(stack, i));
        for (int i = 0; i < stack->count; i++) plainer_layer(&s, i);
        for (int i = 0; i < 4; i++) {
            Stack other = *stack;
            if (stack->input[i] < 2) continue;
            other.input[i]--;
            accept(&s, other);
        }
        Stack other = *stack;
        other.optimizer = 0;
        if (stack->optimizer != 0) accept(&s, other);
        other = *stack;
        other.loss = "mean_squared_error";
        if (strcmp(stack->loss, other.loss) != 0) accept(&s, other);
        other = *stack;
        other.batch--;
        if (other.batch >= other.shards && other.batch > 0) accept(&s, other);
    }
}

/* ---- Printing ---- */

static void print_array(const char *name, CornuArray array, FILE *to)
{
    const bool whole = array.type.dtype == CORNU_I32;
    fprintf(to, "static %s %s[] = {", whole ? "int32_t" : "float", name);
    for (int64_t i = 0; i < count_of(array); i++)
        fprintf(to, "%s%.9g%s", i % 8 ? " " : "\n    ", cornu_array_get(array, i),
                i + 1 < count_of(array) ? "," : "");
    fprintf(to, "\n};\n");
}

static void print_type(const char *name, CornuArray array, FILE *to)
{
    fprintf(to, "cornu_array(%s, %s", name,
            array.type.dtype == CORNU_I32 ? "CORNU_I32" : "CORNU_F32");
    for (int i = 0; i < array.type.shape.rank; i++)
        fprintf(to, ", %lld", (long long)array.type.shape.extent[i]);
    fprintf(to, ")");
}

static void print_layer(const StackLayer *layer, int i, FILE *to)
{
    fprintf(to, "    {\n        const int64_t n = %lld, k = %lld, s = %lld;\n", (long long)layer->n,
            (long long)layer->k, (long long)layer->s);
    fprintf(to, "        const CornuActivation act = (CornuActivation)%d;   /* %s */\n",
            (int)layer->act, cornu_activation_name(layer->act));
    fprintf(to, "        const CornuPadding pad = %s;\n        const bool flag = %d, more = %d;\n",
            layer->pad == CORNU_SAME ? "CORNU_SAME" : "CORNU_VALID", layer->flag, layer->more);
    fprintf(to, "        (void)n, (void)k, (void)s, (void)act, (void)pad, (void)flag, (void)more;\n"
                "        v[%d] = cornu_call(%s, v[%d]", i + 1, kinds[layer->kind].code,
            layer->from);
    if (layer->kind >= FIRST_MERGE) fprintf(to, ", v[%d]", layer->other);
    fprintf(to, ");\n    }\n");
}

void stack_print(const Stack *stack, const Setting *setting, FILE *to)
{
    CornuModel *model = build(stack);
    if (!model) return;
    Data d = data_of(stack, model);
    fprintf(to, "/* CORNU_ISA=%s ./a.out: the two lines of each pair should agree. */\n"
                "#include <stdio.h>\n#include <cornu/cornu.h>\n\n", cornu__isa_name(setting->isa));
    print_array("x", d.x, to);
    print_array("y", d.y, to);
    fprintf(to, "static float to[%lld];\n\nstatic CornuModel *build(void)\n{\n"
                "    CornuSymbol *v[%d];\n    cornu_set_random_seed(%lluu);\n"
                "    v[0] = cornu_input(.shape = {", (long long)count_of(d.to) + 1,
            stack->count + 1, (unsigned long long)stack->seed);
    for (int i = 0; i < 4 && stack->input[i]; i++)
        fprintf(to, " %lld,", (long long)stack->input[i]);
    fprintf(to, " }, .dtype = %s);\n", stack->whole ? "CORNU_I32" : "CORNU_F32");
    for (int i = 0; i < stack->count; i++) print_layer(&stack->layers[i], i, to);
    fprintf(to, "    return cornu_model(.inputs = { v[0] }, .outputs = { v[%d] }, "
                ".policy = \"float32\");\n}\n\n", stack->count);
    fprintf(to, "static void predict(CornuModel *model, const char *name)\n{\n"
                "    cornu_predict_on_batch(model, ");
    print_type("x", d.x, to);
    fprintf(to, ",\n        ");
    print_type("to", d.to, to);
    fprintf(to, ");\n    printf(\"%%-10s\", name);\n    for (int i = 0; i < %lld; i++) "
                "printf(\" %%.6g\", (double)to[i]);\n    printf(\"\\n\");\n}\n\n"
                "int main(void)\n{\n    const char *names[] = { \"reference\", \"%s\" };\n"
                "    CornuModel *models[2];\n    for (int i = 0; i < 2; i++) {\n"
                "        models[i] = build();\n"
                "        CornuDevice *device = cornu_device_open(.name = names[i], .threads = %d, "
                ".shards = i ? %d : 1);\n"
                "        cornu_compile(models[i], .loss = cornu_loss(\"%s\"), .device = device,\n"
                "                      .optimizer = %s);\n"
                "        predict(models[i], names[i]);\n    }\n"
                "    for (int i = 0; i < 2; i++) {\n"
                "        for (int k = 0; k < %d; k++)\n"
                "            cornu_train_on_batch(models[i], .x = ", (long long)count_of(d.to),
            setting->device, setting->threads, strcmp(setting->device, "tpu") ? 1 : stack->shards,
            stack->loss, optimizers[stack->optimizer], STACK_STEPS);
    print_type("x", d.x, to);
    fprintf(to, ",\n                .y = ");
    print_type("y", d.y, to);
    fprintf(to, ");\n        predict(models[i], names[i]);\n        cornu_model_free(models[i]);\n"
                "    }\n"
                "    if (cornu_error_pending()) return puts(cornu_error_message()), 1;\n}\n");
    data_free(&d);
    cornu_model_free(model);
}
