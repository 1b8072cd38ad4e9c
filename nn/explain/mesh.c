/* How a mesh cuts a model: the slices of its weights, what shards exchange, memory, time. */
#include <inttypes.h>
#include <string.h>

#include "../../device/device_internal.h"
#include "../../device/mesh/partition.h"
#include "explain_internal.h"

/* ---- The device ---- */

CornuStatus cornu__explain_open_mesh(CornuExplanation *e)
{
    CornuExplainConfig *config = &e->config;
    const char         *name = config->device_name ? config->device_name : "cpu";
    CORNU__TRY(cornu__fail_prefix(cornu_mesh_check(&config->mesh), "cornu_explain"));
    const int batch = cornu_mesh_axis(&config->mesh, "batch");
    config->no_run = true;
    e->own_device = e->device = cornu_device_open(
        name, .threads = 1, .shards = cornu_mesh_size(&config->mesh, ~0u));
    if (!e->device) return cornu_error_take();
    cornu__device_plan(e->device);
    return cornu_device_set_mesh(e->device, &config->mesh, batch >= 0 ? "batch" : NULL,
                                 config->layout_map);
}

const CornuMesh *cornu__explain_mesh(const CornuExplanation *e)
{
    static const CornuMesh none;
    return e->device ? &e->device->mesh : &none;
}

/* ---- What it amounts to ---- */

static CornuType slice_of(const CornuMesh *mesh, const CornuWeight *weight)
{
    CornuType slice;
    /* The device has checked the layout. */
    cornu__layout_slice(mesh, *cornu_variable_layout(weight->variable), weight->type, &slice);
    return slice;
}

int64_t cornu__explain_gradient_bytes(const CornuExplanation *e)
{
    const CornuModel     *model = e->subject.model;
    const CornuOptimizer *optimizer = model->optimizer;
    const CornuMesh      *mesh = cornu__explain_mesh(e);
    int64_t               bytes = 0;
    for (int i = 0; e->trains && i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        for (int k = 0; k < optimizer->count; k++)
            if (optimizer->w[k] == weight->variable)
                bytes += (int64_t)cornu_type_bytes(slice_of(mesh, weight));
    }
    return bytes;
}

static int64_t bytes_of(const CornuProgram *program, const CornuProgramOp *op)
{
    const CornuValue value = op->id == CORNU_OP_ALL_GATHER
                           ? op->out_first : cornu_program_operands(program, op)[0];
    return (int64_t)cornu_type_bytes(cornu_program_type(program, value));
}

static bool same_exchange(const CornuExplainCollective *a, const CornuExplainCollective *b)
{
    return !strcmp(a->layer, b->layer) && !strcmp(a->op, b->op) && a->axes == b->axes;
}

typedef struct {
    const CornuExplanation *e;
    CornuExplainCollective *all;
    int                     count, space;
} Collectives;

/* `times` exchanges of an op in a step of the plan, which take so long. */
static CornuStatus add_collective(Collectives *to, const CornuProgram *program,
                                  const CornuProgramOp *op, const char *layer, int times,
                                  CornuTpuExchange took)
{
    const int                     shards = to->e->device->shards;
    const CornuAttributes_SHARDS *over = &op->attributes.shards;
    const int                     group = over->size ? (int)over->size : shards;
    int                           k = to->count - 1;
    CornuExplainCollective        one = {
        .layer = layer, .op = cornu_program_op_name(op), .group = group,
        .axes = over->axes ? (unsigned)over->axes : cornu__mesh_all(cornu__explain_mesh(to->e)),
        .groups = shards / group, .times = times, .bytes = times * bytes_of(program, op),
        .wire_bytes = took.link_bytes, .links_s = took.seconds };
    while (k >= 0 && !same_exchange(&to->all[k], &one)) k--;
    if (k < 0) {
        CORNU__TRY(cornu__reserve(&to->all, &to->space, to->count, 1, sizeof *to->all));
        to->all[to->count++] = one;
        return CORNU_OK;
    }
    to->all[k].times += times;
    to->all[k].bytes += one.bytes;
    to->all[k].wire_bytes += one.wire_bytes;
    to->all[k].links_s += one.links_s;
    return CORNU_OK;
}

/* Those of a loop's body, which runs so many times. */
static CornuStatus add_loop(Collectives *to, const CornuProgram *body, const char *layer, int times)
{
    const CornuTpuModel *tpu = to->e->tpu;
    for (int i = 0; i < body->op_count; i++) {
        const CornuProgramOp *op = &body->ops[i];
        CornuTpuExchange      took = { 0 };
        if (!cornu_tpu_is_collective(op->id)) continue;
        if (tpu) took = cornu_tpu_exchange(tpu->profile, &tpu->slice, body, op);
        took.link_bytes *= times;
        took.seconds *= times;
        CORNU__TRY(add_collective(to, body, op, layer, times, took));
    }
    return CORNU_OK;
}

static CornuStatus add_step(Collectives *to, int i)
{
    const CornuProgram        *program = to->e->executable->compiled;
    const CornuExecutableStep *step = &to->e->steps[i];
    const CornuTpuOp          *modelled = to->e->tpu ? &to->e->tpu->ops[i] : NULL;
    for (int k = 0; k < step->op_count; k++) {
        const CornuProgramOp *op = &program->ops[step->ops[k]];
        CornuTpuExchange      took = { 0 };
        if (op->id == CORNU_OP_SCAN)
            CORNU__TRY(add_loop(to, op->attributes.scan.body, op->scope,
                                (int)op->attributes.scan.steps));
        if (!cornu_tpu_is_collective(op->id)) continue;
        if (modelled) took = (CornuTpuExchange){ .link_bytes = modelled->wire_bytes,
                                                 .seconds = modelled->links_s };
        return add_collective(to, program, op, step->scope, 1, took);
    }
    return CORNU_OK;
}

CornuExplainCollective *cornu__explain_collectives(const CornuExplanation *e, int *count)
{
    Collectives to = { .e = e };
    CornuStatus status = cornu__reserve(&to.all, &to.space, 0, 1, sizeof *to.all);
    for (int i = 0; i < e->step_count && !status; i++) status = add_step(&to, i);
    *count = to.count;
    if (!status) return to.all;
    cornu__release(to.all);
    return NULL;
}

/* ---- The page ---- */

enum { PAGE_WIDTH = 100 };
enum { LAYOUT_TEXT = CORNU_MAX_RANK * (CORNU_MESH_AXES * CORNU_MESH_NAME + 2) };

/* "batch+model" for a set of axes, "-" for none. */
static size_t print_axes(char *to, size_t size, const CornuMesh *mesh, unsigned axes)
{
    size_t used = 0;
    to[0] = '\0';
    for (int i = 0; i < mesh->axes; i++)
        if (axes >> i & 1)
            used += (size_t)snprintf(to + used, size - used, "%s%s", used ? "+" : "",
                                     mesh->name[i]);
    return used ? used : (size_t)snprintf(to, size, "-");
}

/* "(-, model)"; "whole". */
static const char *print_layout(char to[LAYOUT_TEXT], const CornuMesh *mesh, CornuLayout layout,
                                int rank)
{
    size_t used = 0;
    if (!cornu__layout_axes(layout)) return "whole";
    for (int i = 0; i < rank; i++) {
        used += (size_t)snprintf(to + used, LAYOUT_TEXT - used, i ? ", " : "(");
        used += print_axes(to + used, LAYOUT_TEXT - used, mesh, layout.cut[i]);
    }
    snprintf(to + used, LAYOUT_TEXT - used, ")");
    return to;
}

/* Which shards have a slice of what an axis cuts: those at its place along that axis. */
static void print_places(const CornuMesh *mesh, FILE *to)
{
    enum { FEW = 16 };
    const int shards = cornu_mesh_size(mesh, ~0u);
    for (int axis = 0; axis < mesh->axes; axis++) {
        fprintf(to, "Cut along %s: ", mesh->name[axis]);
        if (shards > FEW) {
            int stride = 1;
            for (int i = axis + 1; i < mesh->axes; i++) stride *= mesh->extent[i];
            fprintf(to, "shard s has slice s / %d %% %d\n", stride, mesh->extent[axis]);
            continue;
        }
        for (int k = 0; k < mesh->extent[axis]; k++) {
            fprintf(to, "%sslice %d on", k ? ", " : "", k);
            for (int s = 0; s < shards; s++)
                if (cornu_mesh_index(mesh, 1u << axis, s) == k) fprintf(to, " %d", s);
        }
        fputc('\n', to);
    }
}

static void print_head(const CornuExplanation *e, FILE *to)
{
    const CornuMesh *mesh = cornu__explain_mesh(e);
    CornuMeshText    text;
    char             shape[32], batch[CORNU_MESH_AXES * CORNU_MESH_NAME];
    print_axes(batch, sizeof batch, mesh, e->device->data);
    fprintf(to, "%s on the mesh %s: a %s step of %" PRId64 " samples, in %s.\n", e->model,
            cornu_mesh_print(&text, mesh), e->trains ? "training" : "prediction", e->batch,
            e->policy);
    if (e->tpu)
        fprintf(to, "%d shards on %" PRId64 " chips of a TPU %s, %s; times are modelled.\n",
                e->device->shards, e->tpu->slice.chips, e->tpu->slice.name,
                cornu_tpu_slice_shape(&e->tpu->slice, shape));
    fprintf(to, "The samples are dealt over %s.\n", batch);
    print_places(mesh, to);
}

static void print_weights(const CornuExplanation *e, FILE *to)
{
    const CornuMesh *mesh = cornu__explain_mesh(e);
    int64_t          whole = 0, bytes = 0;
    fprintf(to, "\n%-41s %-18s %-16s %-12s %9s\n", "weight", "whole", "layout", "of a shard", "kB");
    for (int i = 0; i < cornu_model_weight_count(e->subject.model); i++) {
        const CornuWeight *weight = cornu_model_weight(e->subject.model, i);
        const CornuLayout  layout = *cornu_variable_layout(weight->variable);
        const CornuType    slice = slice_of(mesh, weight);
        const int64_t      own = (int64_t)cornu_type_bytes(slice);
        char               path[CORNU_EXPLAIN_LONGEST], text[LAYOUT_TEXT];
        CornuText          a, b;
        whole += (int64_t)cornu_type_bytes(weight->type);
        bytes += own;
        fprintf(to, "%-41s %-18s %-16s %-12s %9.1f\n",
                cornu__explain_fit(path, weight->path, 41, 24),
                cornu_type_print(&a, weight->type),
                print_layout(text, mesh, layout, weight->type.shape.rank),
                cornu__layout_axes(layout) ? cornu_shape_print(&b, slice.shape) : "all",
                1e-3 * (double)own);
    }
    fprintf(to, "A shard has %.1f of the %.1f MB of all weights.\n", 1e-6 * (double)bytes,
            1e-6 * (double)whole);
}

static CornuStatus print_collectives(const CornuExplanation *e, FILE *to)
{
    const CornuMesh        *mesh = cornu__explain_mesh(e);
    int                     count;
    CornuExplainCollective *list = cornu__explain_collectives(e, &count);
    double                  moved = 0.0, links_s = 0.0;
    if (!list) return CORNU_ERR_MEMORY;
    fprintf(to, "\n%-33s %-16s %-14s %5s %6s %9s %11s\n", "exchanged in", "by", "along", "times",
            "shards", "kB", "modelled us");
    for (int i = 0; i < count; i++) {
        const CornuExplainCollective *one = &list[i];
        char                          layer[CORNU_EXPLAIN_LONGEST];
        char                          axes[CORNU_MESH_AXES * CORNU_MESH_NAME];
        print_axes(axes, sizeof axes, mesh, one->axes);
        fprintf(to, "%-33s %-16s %-14s %5d %6d %9.1f %11.2f\n",
                *one->layer ? cornu__explain_fit(layer, one->layer, 33, 20) : "-", one->op, axes,
                one->times, one->group, 1e-3 * (double)one->bytes, 1e6 * one->links_s);
        moved += 1e-6 * (double)one->bytes;
        links_s += one->links_s;
    }
    if (count == 0) fputs("nothing\n", to);
    else fprintf(to, "%.1f MB together, %.2f us on the links.\n", moved, 1e6 * links_s);
    cornu__release(list);
    return CORNU_OK;
}

static void print_memory(const CornuExplanation *e, FILE *to)
{
    const CornuMemory *memory = &e->memory;
    const double       hbm = e->tpu ? cornu_tpu_replica_hbm(e->tpu->profile) : 0.0;
    const double       total = (double)memory->total.now;
    char               text[CORNU_EXPLAIN_TEXT];
    size_t             used = (size_t)snprintf(text, sizeof text, "Memory of a shard, MB:");
    for (int use = 0; use < CORNU_USE_COUNT; use++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s %.2f,",
                                 cornu_use_name((CornuUse)use),
                                 1e-6 * (double)memory->uses[use].now);
    used += (size_t)snprintf(text + used, sizeof text - used, " together %.2f", 1e-6 * total);
    if (e->tpu)
        used += (size_t)snprintf(text + used, sizeof text - used, ", of %.0f of HBM%s",
                                 1e-6 * hbm, total > hbm ? ", so that it does not fit" : "");
    used += (size_t)snprintf(text + used, sizeof text - used, ".");
    if (e->trains)
        snprintf(text + used, sizeof text - used, " Gradients, which are among the activations, "
                 "would take %.2f at once.", 1e-6 * (double)cornu__explain_gradient_bytes(e));
    fputc('\n', to);
    cornu__explain_wrap("", text, PAGE_WIDTH, to);
}

static void print_time(const CornuExplanation *e, FILE *to)
{
    const CornuTpuModel *tpu = e->tpu;
    char                 text[CORNU_EXPLAIN_TEXT];
    if (!tpu) return;
    snprintf(text, sizeof text, "Modelled step: %.3f ms on the device, bound by %s: the MXU is "
             "busy %.3f ms, the vector unit %.3f, HBM %.3f, links %.3f. The infeed beside it takes "
             "%.3f ms, the host's dispatch %.2f.", 1e3 * tpu->device_s,
             cornu_tpu_bound_name(tpu->device_bound), 1e3 * tpu->mxu_s, 1e3 * tpu->vector_s,
             1e3 * tpu->hbm_s, 1e3 * tpu->links_s, 1e3 * tpu->infeed_s, 1e3 * tpu->dispatch_s);
    cornu__explain_wrap("", text, PAGE_WIDTH, to);
}

CornuStatus cornu__explain_print_mesh(const CornuExplanation *e, FILE *to)
{
    if (!cornu__explain_mesh(e)->axes)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explanation_print: the device has no mesh, "
                           "expected .mesh of cornu_explain, or one of a strategy");
    print_head(e, to);
    print_weights(e, to);
    CORNU__TRY(print_collectives(e, to));
    print_memory(e, to);
    print_time(e, to);
    return CORNU_OK;
}

/* ---- JSON ---- */

static json_t *axes_json(const CornuMesh *mesh, unsigned axes)
{
    json_t *list = json_array();
    for (int i = 0; i < mesh->axes; i++)
        if (axes >> i & 1) json_array_append_new(list, json_string(mesh->name[i]));
    return list;
}

static json_t *layout_json(const CornuMesh *mesh, CornuLayout layout, int rank)
{
    json_t *list = json_array();
    char    text[LAYOUT_TEXT];
    for (int i = 0; i < rank; i++) {
        print_axes(text, sizeof text, mesh, layout.cut[i]);
        json_array_append_new(list, layout.cut[i] ? json_string(text) : json_null());
    }
    return list;
}

static json_t *weights_json(const CornuExplanation *e)
{
    const CornuMesh *mesh = cornu__explain_mesh(e);
    json_t          *list = json_array();
    for (int i = 0; i < cornu_model_weight_count(e->subject.model); i++) {
        const CornuWeight *weight = cornu_model_weight(e->subject.model, i);
        const CornuType    slice = slice_of(mesh, weight);
        CornuText          a, b;
        json_array_append_new(list, json_pack(
            "{s:s, s:s, s:o, s:s, s:I}", "path", weight->path, "type",
            cornu_type_print(&a, weight->type), "layout",
            layout_json(mesh, *cornu_variable_layout(weight->variable), weight->type.shape.rank),
            "slice", cornu_type_print(&b, slice), "bytes", (json_int_t)cornu_type_bytes(slice)));
    }
    return list;
}

static json_t *collectives_json(const CornuExplanation *e)
{
    int                     count;
    CornuExplainCollective *all = cornu__explain_collectives(e, &count);
    json_t                 *list = all ? json_array() : NULL;
    for (int i = 0; list && i < count; i++)
        json_array_append_new(list, json_pack(
            "{s:s, s:s, s:o, s:i, s:i, s:i, s:I, s:f, s:f}", "layer", all[i].layer, "op",
            all[i].op, "axes", axes_json(cornu__explain_mesh(e), all[i].axes), "group",
            all[i].group, "groups", all[i].groups, "times", all[i].times, "bytes",
            (json_int_t)all[i].bytes, "wire_bytes", all[i].wire_bytes, "links_s",
            all[i].links_s));
    cornu__release(all);
    return list;
}

json_t *cornu__explain_mesh_json(const CornuExplanation *e)
{
    const CornuMesh *mesh = cornu__explain_mesh(e);
    json_t          *axes = json_array();
    if (!mesh->axes) {
        json_decref(axes);
        return json_null();
    }
    for (int i = 0; i < mesh->axes; i++)
        json_array_append_new(axes, json_pack("{s:s, s:i}", "name", mesh->name[i], "shards",
                                              mesh->extent[i]));
    return json_pack("{s:o, s:o, s:o, s:I, s:o}", "axes", axes, "batch",
                     axes_json(mesh, e->device->data), "weights", weights_json(e),
                     "gradient_bytes", (json_int_t)cornu__explain_gradient_bytes(e),
                     "collectives", collectives_json(e));
}
