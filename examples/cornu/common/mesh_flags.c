#include "mesh_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- --mesh ---- */

static CornuStatus read_axis(const char *text, size_t length, int *extent, char *name)
{
    const char  *equals = memchr(text, '=', length);
    const size_t size = equals ? (size_t)(equals - text) : 0;
    char         number[16] = "", *end = number;
    if (equals)
        snprintf(number, sizeof number, "%.*s", (int)(text + length - equals - 1), equals + 1);
    const long value = number[0] >= '0' && number[0] <= '9' ? strtol(number, &end, 10) : 0;
    if (!equals || size == 0 || size >= CORNU_MESH_NAME || *end || value < 1 ||
        value > CORNU_MAX_SHARDS)
        return options_refuse("--mesh: \"%.*s\", expected AXIS=SHARDS, such "
                              "as model=4, of 1 to %d", (int)length, text, CORNU_MAX_SHARDS);
    snprintf(name, CORNU_MESH_NAME, "%.*s", (int)size, text);
    *extent = (int)value;
    return CORNU_OK;
}

CornuStatus mesh_read(const char *text, CornuMesh *mesh)
{
    *mesh = (CornuMesh){ .axes = 0 };
    for (const char *at = text; at;) {
        const size_t length = strcspn(at, ",");
        if (mesh->axes == CORNU_MESH_AXES)
            return options_refuse("--mesh %s: more than %d axes", text,
                                  CORNU_MESH_AXES);
        if (read_axis(at, length, &mesh->extent[mesh->axes], mesh->name[mesh->axes]))
            return cornu_error_status();
        mesh->axes++;
        at = at[length] ? at + length + 1 : NULL;
    }
    if (cornu_mesh_check(mesh)) return options_blame(cornu_error_status());
    if (cornu_mesh_axis(mesh, "batch") < 0 && mesh->axes && !strcmp(mesh->name[0], "model"))
        return options_refuse("--mesh %s: without an axis called batch the first one, model, would "
                              "share each batch and cut no weight; expected batch=1,%s", text,
                              text);
    return CORNU_OK;
}

int mesh_shards(const Options *options)
{
    CornuMesh mesh;
    return options->mesh && !mesh_read(options->mesh, &mesh) ? cornu_mesh_size(&mesh, ~0u) : 0;
}

bool mesh_is_given(const Options *options)
{
    return options && (options->mesh || options->fully_sharded);
}

/* ---- --layout ---- */

/* "PATTERN=AXIS,AXIS": an expression may have "=" in it, the names of axes may not. */
static CornuStatus read_layout(char *text, CornuLayoutRow *row)
{
    char *equals = strrchr(text, '='), *axis = equals ? equals + 1 : NULL;
    if (!equals || equals == text)
        return options_refuse("--layout: \"%s\", expected PATTERN=AXIS,AXIS, "
                              "such as dense/kernel=,model", text);
    *equals = '\0';
    row->pattern = text;
    for (int i = 0; axis; i++) {
        char *comma = strchr(axis, ',');
        if (i == CORNU_MAX_RANK)
            return options_refuse("--layout %s: more than %d axes", text,
                                  CORNU_MAX_RANK);
        if (comma) *comma = '\0';
        row->axes[i] = *axis ? axis : NULL;
        axis = comma ? comma + 1 : NULL;
    }
    return CORNU_OK;
}

static CornuStatus read_layouts(const OptionTexts *given, MeshLayouts *to)
{
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < given->count && !status; i++) {
        to->text[i] = strdup(given->text[i]);
        status = to->text[i] ? read_layout(to->text[i], &to->own[i])
                             : cornu_error_set(CORNU_ERR_MEMORY, "no memory for --layout");
    }
    to->rows = to->own;
    return status;
}

CornuStatus mesh_layouts(const OptionTexts *given, const CornuModel *model, CornuMesh mesh,
                         MeshLayouts *to)
{
    *to = (MeshLayouts){ .rows = NULL };
    if (given->count) return read_layouts(given, to);
    to->rows = to->by_class = cornu_default_layout(model, mesh);
    return to->rows ? CORNU_OK : cornu_error_status();
}

void mesh_free_layouts(MeshLayouts *layouts)
{
    for (int i = 0; i < OPTION_MAX_TEXTS; i++) free(layouts->text[i]);
    cornu_layout_free(layouts->by_class);
}

/* ---- --pipeline ---- */

CornuStatus pipeline_read(const char *text, CornuPipelineParallelConfig *to)
{
    static const char *const schedules[] = { "1f1b", "gpipe" };
    char *end;
    long  stages = strtol(text, &end, 10), microbatches = 4 * stages;
    int   schedule = 0;
    if (*end == ',') microbatches = strtol(end + 1, &end, 10);
    while (*end == ',' && schedule < 2 && strcmp(end + 1, schedules[schedule])) schedule++;
    if (*text < '0' || *text > '9' || (*end && *end != ',') || schedule == 2 || stages < 1 ||
        stages > CORNU_MAX_STAGES || microbatches < 1 || microbatches > CORNU_MAX_MICROBATCHES)
        return options_refuse("--pipeline %s: expected 1 to %d stages, and perhaps 1 to %d "
                              "microbatches and 1f1b or gpipe, such as 4,8", text,
                              CORNU_MAX_STAGES, CORNU_MAX_MICROBATCHES);
    to->stages = (int)stages;
    to->microbatches = (int)microbatches;
    to->schedule = schedule == 0 ? CORNU_1F1B : CORNU_GPIPE;
    return CORNU_OK;
}

static CornuStatus check_pipeline(const Options *options)
{
    CornuPipelineParallelConfig config = { .unset = 0 };
    if (!options->pipeline) return CORNU_OK;
    if (options->fully_sharded && !options->mesh && !options->shards)
        return options_refuse("--pipeline and --fully-sharded: the stages have one shard, expected "
                              "--shards or --mesh as well");
    return pipeline_read(options->pipeline, &config);
}

CornuStrategy *pipeline_open(const Options *options, CornuPrecision precision,
                             CornuProcesses *processes)
{
    CornuPipelineParallelConfig config = {
        .device = options->device, .threads = (int)options->threads, .precision = precision,
        .iterations_per_loop = options->steps_per_execution, .processes = processes,
        .num_shards = mesh_shards(options) ? mesh_shards(options) : (int)options->shards,
    };
    if (pipeline_read(options->pipeline, &config)) return NULL;
    CornuStrategy *strategy = cornu_pipeline_parallel_from(&config);
    if (!strategy) mesh_blame(options, cornu_error_status());
    return strategy;
}

/* ---- All ---- */

CornuStatus mesh_check(const Options *options)
{
    CornuMesh   mesh;
    MeshLayouts layouts = { .rows = NULL };
    if (check_pipeline(options)) return cornu_error_status();
    if (!options->mesh)
        return options->layout.count == 0 ? CORNU_OK
            : options_refuse("--layout %s is of a mesh, expected --mesh "
                             "AXIS=SHARDS,... as well", options->layout.text[0]);
    CornuStatus status = mesh_read(options->mesh, &mesh);
    if (status) return status;
    const int shards = cornu_mesh_size(&mesh, ~0u);
    if (options->shards && options->shards != shards)
        return options_refuse("--mesh %s has %d shards and --shards is %lld, "
                              "expected the same number, or one of both flags", options->mesh,
                              shards, (long long)options->shards);
    status = read_layouts(&options->layout, &layouts);
    mesh_free_layouts(&layouts);
    return status;
}

CornuStatus mesh_blame(const Options *options, CornuStatus status)
{
    const bool refused = status == CORNU_ERR_ARGUMENT || status == CORNU_ERR_SHAPE;
    return refused && mesh_is_given(options) ? options_blame(status) : status;
}

static void say(const Options *options, const CornuMesh *mesh, const CornuLayoutRow *rows,
                const CornuModel *model)
{
    static bool   said;
    CornuMeshText text;
    int           count = 0;
    while (rows[count].pattern) count++;
    if (said) return;
    said = true;
    printf("Mesh %s: %d layout%s for the %d weights of %s%s", cornu_mesh_print(&text, mesh), count,
           count == 1 ? "" : "s", cornu_model_weight_count(model), cornu_model_name(model),
           options->fully_sharded ? ", fully sharded" : "");
    if (cornu_mesh_axis(mesh, "batch") < 0)
        printf("; the rows of a batch are dealt over %s", mesh->name[0]);
    putchar('\n');
}

CornuStatus mesh_lay_out(const Options *options, const CornuModel *model, CornuDevice *device)
{
    if (!mesh_is_given(options)) return CORNU_OK;
    CornuMesh   mesh;
    MeshLayouts layouts = { .rows = NULL };
    CornuStatus status = mesh_read(options->mesh, &mesh);
    if (!options->mesh) mesh = (CornuMesh){ 1, { cornu_device_shards(device) }, { "batch" } };
    if (!status) status = mesh_layouts(&options->layout, model, mesh, &layouts);
    if (!status) status = cornu_device_set_mesh(device, &mesh, NULL, layouts.rows);
    if (!status && options->fully_sharded) status = cornu_device_shard_fully(device);
    if (!status) say(options, &mesh, layouts.rows, model);
    mesh_free_layouts(&layouts);
    return mesh_blame(options, status);
}
