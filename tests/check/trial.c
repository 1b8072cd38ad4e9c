#include "trial.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../device/debug_internal.h"
#include "../../tensor/graph_internal.h"
#include "fields.h"

enum { LIMIT_S = 60 };

TrialCounts trial_counts;

/* ---- Cases ---- */

void trial_free(Trial *c)
{
    for (int i = 0; c->program && i < c->program->input_count; i++) free(c->input[i]);
    free(c->input);
    cornu_program_free(c->program);
    *c = (Trial){ .shards = c->shards };
}

static int64_t count_of(const Trial *c, CornuValue v)
{
    const bool varies = c->program->values[v].varies;
    return cornu_type_count(cornu_program_type(c->program, v)) * (varies ? c->shards : 1);
}

int64_t trial_count(const Trial *c, int i) { return count_of(c, c->program->inputs[i]); }

CornuValue trial_input(Trial *c, CornuType type, bool varies, const double *numbers)
{
    CornuValue  value;
    CornuStatus status = varies ? cornu_program_shard_input(c->program, type, &value)
                                : cornu_program_input(c->program, type, &value);
    if (status) return CORNU_NO_VALUE;
    const int i = c->program->input_count - 1;
    if (i >= c->input_space) {
        c->input_space = 2 * i + 8;
        c->input = realloc(c->input, (size_t)c->input_space * sizeof *c->input);
    }
    const int64_t count = trial_count(c, i);
    c->input[i] = calloc((size_t)count + 1, sizeof(double));
    memcpy(c->input[i], numbers, (size_t)count * sizeof(double));
    return value;
}

/* Copies what `needed` says from the front to the back. */
static bool copy_needed(const Trial *c, double *const *replaced, const bool *needed,
                        CornuValue *map, Trial *to)
{
    const CornuProgram *p = c->program;
    for (int v = 0; v < p->value_count; v++) {
        const CornuProgramValue *at = &p->values[v];
        map[v] = map[v] >= 0 ? map[v] : CORNU_NO_VALUE;
        if (!needed[v] || map[v] != CORNU_NO_VALUE) continue;
        if (at->op < 0 || (replaced && replaced[v])) {
            map[v] = trial_input(to, at->type, at->varies,
                                at->op < 0 ? c->input[at->index] : replaced[v]);
            if (map[v] == CORNU_NO_VALUE) return false;
            continue;
        }
        const CornuProgramOp *op = &p->ops[at->op];
        CornuValue            in[64], out[CORNU_MAX_OUTPUTS];
        for (int i = 0; i < op->in_count; i++) in[i] = map[cornu_program_operands(p, op)[i]];
        if (cornu_program_record(to->program, op->id, &op->attributes, in, op->in_count, out))
            return false;
        for (int k = 0; k < op->out_count; k++)
            if (map[op->out_first + k] < 0 && !(replaced && replaced[op->out_first + k]))
                map[op->out_first + k] = out[k];
    }
    return true;
}

bool trial_pruned(const Trial *c, double *const *replaced, Trial *pruned)
{
    const CornuProgram *p = c->program;
    bool       *needed = calloc((size_t)p->value_count + 1, sizeof *needed);
    CornuValue *map = malloc(((size_t)p->value_count + 1) * sizeof *map);
    for (int v = 0; v < p->value_count; v++) map[v] = CORNU_NO_VALUE;
    for (int i = 0; i < p->output_count; i++) {
        needed[p->outputs[i].value] = true;
        if (p->outputs[i].alias >= 0) needed[p->inputs[p->outputs[i].alias]] = true;
    }
    for (int i = p->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &p->ops[i];
        bool                  runs = false;
        for (int k = 0; k < op->out_count; k++)
            runs |= needed[op->out_first + k] && !(replaced && replaced[op->out_first + k]);
        for (int k = 0; k < op->in_count && runs; k++)
            needed[cornu_program_operands(p, op)[k]] = true;
    }
    *pruned = (Trial){ .program = cornu_program_create(), .shards = c->shards };
    bool done = copy_needed(c, replaced, needed, map, pruned);
    for (int i = 0; i < p->output_count && done; i++) {
        const int alias = p->outputs[i].alias;
        int       to = -1;
        if (alias >= 0) to = pruned->program->values[map[p->inputs[alias]]].index;
        done = cornu_program_output(pruned->program, map[p->outputs[i].value], to) == CORNU_OK;
    }
    free(needed);
    free(map);
    if (!done) {
        cornu_error_take();
        trial_free(pruned);
    }
    return done;
}

/* ---- What is expected ---- */

typedef struct {
    double *value[TRIAL_ROUNDS], *bound[TRIAL_ROUNDS];
    int64_t count;
} Expected;

static void expected_free(Expected *e, int count)
{
    for (int i = 0; i < count; i++)
        for (int r = 0; r < TRIAL_ROUNDS; r++) { free(e[i].value[r]); free(e[i].bound[r]); }
    free(e);
}

static double *copied(const double *from, int64_t count)
{
    double *to = calloc((size_t)count + 1, sizeof *to);
    memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

/* By output; NULL where the reference refuses the data. */
static Expected *expect(const Trial *c)
{
    const CornuProgram *p = c->program;
    Expected *e = calloc((size_t)p->output_count + 1, sizeof *e);
    double  **input = calloc((size_t)p->input_count + 1, sizeof *input);
    double  **bound = calloc((size_t)p->input_count + 1, sizeof *bound);
    for (int i = 0; i < p->input_count; i++) input[i] = c->input[i];
    CornuStatus status = CORNU_OK;
    for (int r = 0; r < TRIAL_ROUNDS && !status; r++) {
        Bounds b;
        status = bounds_of(&b, p, c->shards, input, bound);
        for (int i = 0; i < p->output_count && !status; i++) {
            const CornuValue v = p->outputs[i].value;
            const int        alias = p->outputs[i].alias;
            e[i].count = bounds_count(&b, p, v);
            e[i].value[r] = copied(b.value[v], e[i].count);
            e[i].bound[r] = copied(b.bound[v], e[i].count);
            if (alias < 0) continue;
            input[alias] = e[i].value[r];
            bound[alias] = e[i].bound[r];
        }
        bounds_free(&b);
    }
    free(input);
    free(bound);
    if (!status) return e;
    cornu_error_take();
    expected_free(e, p->output_count);
    return NULL;
}

/* ---- Running ---- */

static void fail(Verdict *verdict, int output, const char *format, ...) CORNU__PRINTF(3, 4);

static void fail(Verdict *verdict, int output, const char *format, ...)
{
    va_list arguments;
    if (verdict->failed) return;
    verdict->failed = true;
    verdict->output = output;
    va_start(arguments, format);
    vsnprintf(verdict->message, sizeof verdict->message, format, arguments);
    va_end(arguments);
}

static void compare(Verdict *verdict, int output, int round, const double *got, const double *value,
                    const double *bound, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        trial_counts.compared++;
        trial_counts.unbounded += !isfinite(bound[i]);
        if (!isfinite(bound[i]) || got[i] == value[i]) continue;
        if (!(fabs(got[i] - value[i]) <= bound[i] * (1.0 + 1e-9) + 1e-15 * fabs(value[i])))
            fail(verdict, output, "output %d, element %lld, run %d: %.9g, expected %.9g within "
                 "%.2g", output, (long long)i, round + 1, got[i], value[i], bound[i]);
    }
}

static CornuStatus transfer(CornuBuffer *buffer, double *numbers, bool write)
{
    CornuType   type = cornu_buffer_type(buffer);
    CornuArray  array = { type, malloc(cornu_type_bytes(type) + 8) };
    CornuStatus status = CORNU_OK;
    for (int64_t i = 0; i < cornu_type_count(type) && write; i++)
        cornu_array_set(array, i, numbers[i]);
    status = write ? cornu_buffer_write(buffer, array) : cornu_buffer_read(buffer, array);
    for (int64_t i = 0; i < cornu_type_count(type) && !write; i++)
        numbers[i] = cornu_array_get(array, i);
    free(array.data);
    return status;
}

/* The elements of all outputs of all rounds, one after the other, by which two runs are compared.
 * */
typedef struct { double *numbers; int64_t count; } Made;

/* Nothing is compared if `expected` is NULL. */
static CornuStatus run_rounds(const Trial *c, CornuDevice *device, const Expected *expected,
                              Verdict *verdict, Made *made)
{
    const CornuProgram *p = c->program;
    CornuBuffer *in[256] = { NULL }, *out[256] = { NULL };
    CornuStatus  status = CORNU_OK;
    const int    shards = cornu_device_shards(device);
    int64_t      all = 1;
    for (int i = 0; i < p->output_count; i++)
        all += count_of(c, p->outputs[i].value) * TRIAL_ROUNDS;
    made->numbers = calloc((size_t)all, sizeof *made->numbers);
    CornuExecutable *executable = cornu_device_compile(device, p);
    if (!executable) {
        fail(verdict, -1, "does not compile: %s", cornu_error_message());
        return cornu_error_take();
    }
    for (int i = 0; i < p->input_count && !status; i++) {
        in[i] = cornu_buffer_create(device, cornu_program_buffer_type(p, p->inputs[i], shards),
                                    .per_shard = p->values[p->inputs[i]].varies);
        status = in[i] ? transfer(in[i], c->input[i], true) : cornu_error_take();
    }
    for (int i = 0; i < p->output_count && !status; i++)
        if (p->outputs[i].alias < 0) {
            const CornuValue v = p->outputs[i].value;
            out[i] = cornu_buffer_create(device, cornu_program_buffer_type(p, v, shards),
                                         .per_shard = p->values[v].varies);
            if (!out[i]) status = cornu_error_take();
        }
    for (int r = 0; r < TRIAL_ROUNDS && !status; r++) {
        status = cornu_executable_run(executable, in, out);
        for (int i = 0; i < p->output_count && !status; i++) {
            const int alias = p->outputs[i].alias;
            double   *got = made->numbers + made->count;
            made->count += count_of(c, p->outputs[i].value);
            status = transfer(alias < 0 ? out[i] : in[alias], got, false);
            if (!status && expected)
                compare(verdict, i, r, got, expected[i].value[r], expected[i].bound[r],
                        expected[i].count);
        }
    }
    if (status) fail(verdict, -1, "%s: %s", cornu_status_name(status), cornu_error_message());
    for (int i = 0; i < p->input_count; i++) cornu_buffer_free(in[i]);
    for (int i = 0; i < p->output_count; i++) cornu_buffer_free(out[i]);
    cornu_executable_release(executable);
    return status;
}

double *trial_numbers(const Trial *c, CornuDevice *device, int64_t *count, Verdict *verdict)
{
    Made made = { NULL, 0 };
    Expected *expected = expect(c);
    *verdict = (Verdict){ .output = -1, .unusable = !expected };
    if (expected) {
        run_rounds(c, device, NULL, verdict, &made);
        expected_free(expected, c->program->output_count);
    }
    *count = made.count;
    return made.numbers;
}

static Made run_on(const Trial *c, const Setting *setting, int threads, const Expected *expected,
                   Verdict *verdict)
{
    Made made = { NULL, 0 };
    setenv("CORNU_ISA", cornu__isa_name(setting->isa), 1);
    setenv("CORNU_VERIFY", "1", 1);
    CornuDevice *device = cornu_device_open(.name = setting->device, .threads = threads,
                                            .shards = c->shards);
    if (!device) {
        fail(verdict, -1, "does not open: %s", cornu_error_message());
        cornu_error_take();
        return made;
    }
    run_rounds(c, device, expected, verdict, &made);
    cornu_device_close(device);
    return made;
}

CornuGraph *trial_graph(const Trial *c, CornuDevice *device, CornuTensor **tensor)
{
    const CornuProgram *p = c->program;
    CornuGraph         *graph = cornu_graph_create(device);
    bool                recorded = graph != NULL;
    for (int v = 0; v < p->value_count && recorded; v++) {
        const CornuProgramValue *at = &p->values[v];
        if (at->op < 0) {
            tensor[v] = at->varies ? cornu_graph_shard_input(graph, at->type)
                                   : cornu_graph_input(graph, at->type);
        } else if (p->ops[at->op].out_first == v) {
            const CornuProgramOp *op = &p->ops[at->op];
            CornuTensor          *in[64], *out[CORNU_MAX_OUTPUTS];
            for (int i = 0; i < op->in_count; i++)
                in[i] = tensor[cornu_program_operands(p, op)[i]];
            if (op->in_count) cornu__record(op->id, &op->attributes, in, op->in_count, out);
            else out[0] = cornu__record0(graph, op->id, &op->attributes);
            for (int k = 0; k < op->out_count; k++) tensor[v + k] = out[k];
        }
        recorded = tensor[v] != NULL;
    }
    if (recorded) return graph;
    cornu_graph_free(graph);
    return NULL;
}

/* The program in a graph, as layers record it, after tensor/rewrite.c; its values in double. */
static void try_rewritten(const Trial *c, const Expected *expected, Verdict *verdict)
{
    const CornuProgram *p = c->program;
    CornuDevice  *device = cornu_device_open("reference");
    CornuTensor **tensor = calloc((size_t)p->value_count + 1, sizeof *tensor);
    CornuGraph   *graph = trial_graph(c, device, tensor);
    if (!graph || cornu__rewrite(graph, NULL)) {
        fail(verdict, -1, "does not rewrite: %s", cornu_error_message());
        cornu_error_take();
    } else {
        Bounds b;
        if (bounds_of(&b, graph->program, c->shards, c->input, NULL)) {
            fail(verdict, -1, "rewritten: %s", cornu_error_message());
            cornu_error_take();
        }
        for (int i = 0; i < p->output_count && !verdict->failed; i++)
            if (cornu_tensor_varies(tensor[p->outputs[i].value]) !=
                p->values[p->outputs[i].value].varies)
                fail(verdict, i, "output %d, rewritten, varies from shard to shard or no more", i);
        for (int i = 0; i < p->output_count && !verdict->failed; i++)
            compare(verdict, i, 0, b.value[tensor[p->outputs[i].value]->value],
                    expected[i].value[0], expected[i].bound[0], expected[i].count);
        bounds_free(&b);
    }
    free(tensor);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

Verdict trial_run_here(const Trial *c, const Setting *setting)
{
    const bool rewritten = !strcmp(setting->device, "rewrite");
    Verdict    verdict = { .output = -1 };
    bounds_any_maximum = rewritten;
    Expected *expected = expect(c);
    bounds_any_maximum = false;
    verdict.unusable = !expected;
    if (!expected) return verdict;
    if (rewritten) {
        try_rewritten(c, expected, &verdict);
    } else {
        Made one = run_on(c, setting, 1, expected, &verdict);
        if (!verdict.failed && setting->threads > 1) {
            Made many = run_on(c, setting, setting->threads, expected, &verdict);
            if (!verdict.failed && memcmp(one.numbers, many.numbers,
                                          (size_t)one.count * sizeof(double)) != 0)
                fail(&verdict, -1, "%d threads give other bits than 1", setting->threads);
            free(many.numbers);
        }
        free(one.numbers);
    }
    expected_free(expected, c->program->output_count);
    return verdict;
}

Verdict attempt_apart(Attempt *attempt, const void *what, const Setting *setting)
{
    Verdict verdict = { .output = -1 };
    int     ends[2], status = 0;
    fflush(NULL);
    if (pipe(ends)) return verdict;
    const pid_t child = fork();
    if (child == 0) {
        alarm(LIMIT_S);
        verdict = attempt(what, setting);
        _exit(write(ends[1], &verdict, sizeof verdict) != sizeof verdict);
    }
    close(ends[1]);
    const bool told = read(ends[0], &verdict, sizeof verdict) == sizeof verdict;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (told) return verdict;
    const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    fail(&verdict, -1, number == SIGALRM ? "hangs: no end within %d s" : "ends by signal %d",
         number == SIGALRM ? LIMIT_S : number);
    return verdict;
}

void guilty_passes(Attempt *attempt, const void *what, const Setting *setting, char *text,
                   size_t size)
{
    static const char *const passes[] = {
#define X(id, name) #name,
        CORNU_PASSES(X)
#undef X
    };
    const char *kept = getenv("CORNU_PASSES");
    char        given[256];
    snprintf(given, sizeof given, "%s", kept ? kept : "");
    int used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        char without[300];
        snprintf(without, sizeof without, "%s%s-%s", given, *given ? "," : "", passes[i]);
        setenv("CORNU_PASSES", without, 1);
        if ((size_t)used < size && !attempt_apart(attempt, what, setting).failed)
            used += snprintf(text + used, size - (size_t)used, "%s%s", used ? ", " : "", passes[i]);
    }
    if (kept) setenv("CORNU_PASSES", given, 1);
    else unsetenv("CORNU_PASSES");
    if (!used) snprintf(text, size, "none alone");
}

static Verdict attempt(const void *trial, const Setting *setting)
{
    return trial_run_here(trial, setting);
}

Verdict trial_run(const Trial *c, const Setting *setting)
{
    return attempt_apart(attempt, c, setting);
}

void trial_guilty(const Trial *c, const Setting *setting, char *text, size_t size)
{
    guilty_passes(attempt, c, setting, text, size);
}

/* ---- Printing ---- */

void setting_print(const Setting *s, int shards, char *text, size_t size)
{
    if (!strcmp(s->device, "rewrite")) snprintf(text, size, "tensor/rewrite.c");
    else snprintf(text, size, "%s, %s, %d thread%s, %d shard%s", s->device, cornu__isa_name(s->isa),
                  s->threads, s->threads == 1 ? "" : "s", shards, shards == 1 ? "" : "s");
}

static void print_type(CornuType type, FILE *to)
{
    fprintf(to, "%s", type.shape.rank ? "cornu_type(" : "cornu_scalar(");
    fprintf(to, "%s", dtype_identifier(type.dtype));
    for (int i = 0; i < type.shape.rank; i++)
        fprintf(to, ", %lld", (long long)type.shape.extent[i]);
    fprintf(to, ")");
}

/* Statements that make the program again, its values being v[0], v[1], ... */
static void print_statements(const CornuProgram *p, const char *program, const char *v, FILE *to)
{
    for (int k = 0; k < p->value_count; k++) {
        const CornuProgramValue *at = &p->values[k];
        if (at->op < 0) {
            fprintf(to, "    assert_int_equal(cornu_program_%sinput(%s, ",
                    at->varies ? "shard_" : "", program);
            print_type(at->type, to);
            fprintf(to, ", &%s[%d]), CORNU_OK);\n", v, k);
            continue;
        }
        const CornuProgramOp *op = &p->ops[at->op];
        if (op->out_first != k) continue;
        const CornuProgram *body = cornu__attributes_program(op->id, &op->attributes);
        if (body) {
            fprintf(to, "    CornuProgram *body = cornu_program_create();\n    CornuValue b[%d];\n",
                    body->value_count);
            print_statements(body, "body", "b", to);
        }
        fprintf(to, "    assert_int_equal(cornu_program_record(%s, %s,\n        ", program,
                op_identifier(op->id));
        fields_print(op->id, &op->attributes, to);
        fprintf(to, ",\n        (CornuValue[]){ ");
        for (int i = 0; i < op->in_count; i++)
            fprintf(to, "%s[%d], ", v, cornu_program_operands(p, op)[i]);
        fprintf(to, "%s }, %d, &%s[%d]), CORNU_OK);\n", op->in_count ? "" : "0", op->in_count, v,
                k);
        if (body) fprintf(to, "    cornu_program_free(body);\n");
    }
    for (int i = 0; i < p->output_count; i++)
        fprintf(to, "    assert_int_equal(cornu_program_output(%s, %s[%d], %d), CORNU_OK);\n",
                program, v, p->outputs[i].value, p->outputs[i].alias);
}

static void print_numbers(const char *name, int i, const double *x, int64_t count, FILE *to)
{
    fprintf(to, "    static const double %s%d[] = {", name, i);
    for (int64_t k = 0; k < count; k++) {
        fprintf(to, "%s", k % 8 ? " " : "\n        ");
        if (isfinite(x[k])) fprintf(to, "%.17g", x[k]);
        else fprintf(to, "%s", isnan(x[k]) ? "NAN" : x[k] > 0.0 ? "INFINITY" : "-INFINITY");
        fprintf(to, "%s", k + 1 < count ? "," : "");
    }
    fprintf(to, "\n    };\n");
}

void trial_print_test(const Trial *c, const Setting *setting, const char *name, FILE *to)
{
    const CornuProgram *p = c->program;
    Expected           *expected = expect(c);
    if (!expected) return;
    const bool rewritten = !strcmp(setting->device, "rewrite");
    fprintf(to, "/* Runs in tests/device, with programs.h%s. */\n"
                "static void test_%s(void **state)\n{\n    (void)state;\n",
            rewritten ? "; here the improved graph differs: record it with tensor/ops.h" : "",
            name);
    for (int i = 0; i < p->input_count; i++)
        print_numbers("in", i, c->input[i], trial_count(c, i), to);
    for (int i = 0; i < p->output_count; i++) {
        print_numbers("out", i, expected[i].value[0], expected[i].count, to);
        print_numbers("bound", i, expected[i].bound[0], expected[i].count, to);
    }
    fprintf(to, "    CornuProgram *p = cornu_program_create();\n    CornuValue    v[%d];\n",
            p->value_count);
    print_statements(p, "p", "v", to);
    fprintf(to, "    setenv(\"CORNU_ISA\", \"%s\", 1);\n"
                "    CornuDevice *device =\n"
                "        cornu_device_open(\"%s\", .threads = %d, .shards = %d);\n"
                "    Compiled     compiled = compile(device, p);\n", cornu__isa_name(setting->isa),
            rewritten ? "cpu" : setting->device, setting->threads, c->shards);
    for (int i = 0; i < p->input_count; i++)
        fprintf(to, "    set_numbers(&compiled, %d, in%d);\n", i, i);
    fprintf(to, "    run(&compiled);\n");
    for (int i = 0; i < p->output_count; i++)
        fprintf(to, "    expect_within(&compiled, %d, out%d, bound%d);\n", i, i, i);
    fprintf(to, "    release(&compiled);\n    cornu_device_close(device);\n"
                "    cornu_program_free(p);\n}\n");
    expected_free(expected, p->output_count);
}
