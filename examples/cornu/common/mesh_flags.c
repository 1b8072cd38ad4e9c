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
    return options_blame(cornu_mesh_check(mesh));
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

CornuStatus mesh_read_layouts(const OptionTexts *given, MeshLayouts *to)
{
    CornuStatus status = CORNU_OK;
    *to = (MeshLayouts){ .text = { NULL } };
    for (int i = 0; i < given->count && !status; i++) {
        to->text[i] = strdup(given->text[i]);
        status = to->text[i] ? read_layout(to->text[i], &to->rows[i])
                             : cornu_error_set(CORNU_ERR_MEMORY, "no memory for --layout");
    }
    return status;
}

void mesh_free_layouts(MeshLayouts *layouts)
{
    for (int i = 0; i < OPTION_MAX_TEXTS; i++) free(layouts->text[i]);
}

/* ---- Both ---- */

CornuStatus mesh_check(const Options *options)
{
    CornuMesh   mesh;
    MeshLayouts layouts = { .text = { NULL } };
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
    status = mesh_read_layouts(&options->layout, &layouts);
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
    if (!said)
        printf("Mesh %s: %d layout%s for the %d weights of %s%s\n", cornu_mesh_print(&text, mesh),
               count, count == 1 ? "" : "s", cornu_model_weight_count(model),
               cornu_model_name(model), options->fully_sharded ? ", fully sharded" : "");
    said = true;
}

CornuStatus mesh_lay_out(const Options *options, const CornuModel *model, CornuDevice *device)
{
    if (!mesh_is_given(options)) return CORNU_OK;
    CornuMesh       mesh;
    MeshLayouts     layouts = { .text = { NULL } };
    CornuLayoutRow *chosen = NULL;
    CornuStatus     status = mesh_read(options->mesh, &mesh);
    if (!options->mesh) mesh = (CornuMesh){ 1, { cornu_device_shards(device) }, { "batch" } };
    if (!status) status = mesh_read_layouts(&options->layout, &layouts);
    if (!status && !options->layout.count && !(chosen = cornu_default_layout(model, mesh)))
        status = cornu_error_take();
    const CornuLayoutRow *rows = chosen ? chosen : layouts.rows;
    if (!status) status = cornu_device_set_mesh(device, &mesh, NULL, rows);
    if (!status && options->fully_sharded) status = cornu_device_shard_fully(device);
    if (!status) say(options, &mesh, rows, model);
    cornu_layout_free(chosen);
    mesh_free_layouts(&layouts);
    return mesh_blame(options, status);
}
