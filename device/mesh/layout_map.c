#include "layout_map_internal.h"

#include <regex.h>
#include <string.h>

#include "../device_internal.h"
#include "../memory_internal.h"

typedef struct {
    char       *pattern;
    regex_t     expression;
    bool        compiled, used;
    bool        of_output;     /* of layers, not of variables */
    CornuLayout layout;
    int         rank;          /* axes that the row names */
} Row;

struct CornuLayoutMap {
    Row *rows;
    int  count;
    bool may_be_unused;
};

/* ---- Making ---- */

/* The mask of "model", or of "batch+model". */
static CornuStatus read_axes(const CornuMesh *mesh, const char *pattern, const char *text,
                             unsigned *axes)
{
    CornuMeshText print;
    *axes = 0;
    while (text) {
        const char  *end = strchr(text, '+');
        const size_t length = end ? (size_t)(end - text) : strlen(text);
        char         name[CORNU_MESH_NAME] = { 0 };
        memcpy(name, text, length < sizeof name ? length : sizeof name - 1);
        const int axis = length < sizeof name ? cornu_mesh_axis(mesh, name) : -1;
        if (axis < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "layout of %s: the mesh %s has no axis \"%s\"",
                               pattern, cornu_mesh_print(&print, mesh), text);
        if (*axes >> axis & 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "layout of %s: \"%s\" cuts an axis twice",
                               pattern, name);
        if (mesh->extent[axis] > 1) *axes |= 1u << axis;   /* one slice is the whole */
        text = end ? end + 1 : NULL;
    }
    return CORNU_OK;
}

static CornuStatus read_row(const CornuMesh *mesh, const CornuLayoutRow *rows, int number, Row *row)
{
    const CornuLayoutRow *from = &rows[number];
    unsigned              used = 0;
    for (int i = 0; i < number; i++)
        if (!strcmp(rows[i].pattern, from->pattern))
            return cornu__fail(CORNU_ERR_ARGUMENT, "layout of %s: the map has it in rows %d and "
                               "%d, expected once", from->pattern, i, number);
    for (int i = 0; i < CORNU_MAX_RANK; i++) {
        unsigned axes;
        CORNU__TRY(read_axes(mesh, from->pattern, from->axes[i], &axes));
        if (axes & used)
            return cornu__fail(CORNU_ERR_ARGUMENT, "layout of %s: an axis of the mesh cuts two "
                               "axes of the variable", from->pattern);
        used |= axes;
        row->layout.cut[i] = (unsigned char)axes;
        if (axes) row->rank = i + 1;
    }
    const size_t length = strlen(from->pattern), ending = strlen("/output");
    row->of_output = length > ending && !strcmp(from->pattern + length - ending, "/output");
    row->pattern = cornu__copy_text(from->pattern);
    if (!row->pattern) return CORNU_ERR_MEMORY;
    row->compiled = !regcomp(&row->expression, from->pattern, REG_EXTENDED);
    return row->compiled ? CORNU_OK
                         : cornu__fail(CORNU_ERR_ARGUMENT, "layout of %s: expected a path or a "
                                       "regular expression", from->pattern);
}

CornuLayoutMap *cornu__layout_map(const CornuMesh *mesh, const CornuLayoutRow *rows)
{
    int count = 0;
    while (rows[count].pattern) count++;
    CornuLayoutMap *map = cornu__allocate(1, sizeof *map);
    if (!map || !(map->rows = cornu__allocate((size_t)count + 1, sizeof *map->rows))) {
        cornu__layout_map_free(map);
        return cornu__null();
    }
    for (; map->count < count; map->count++)
        if (read_row(mesh, rows, map->count, &map->rows[map->count])) {
            map->count++;
            cornu__layout_map_free(map);
            return cornu__null();
        }
    return map;
}

void cornu__layout_map_free(CornuLayoutMap *map)
{
    if (!map) return;
    for (int i = 0; i < map->count; i++) {
        if (map->rows[i].compiled) regfree(&map->rows[i].expression);
        cornu__release(map->rows[i].pattern);
    }
    cornu__release(map->rows);
    cornu__release(map);
}

/* ---- Finding ---- */

/* Whether the row's expression is found in a variable's path, or is all of an output's. */
static bool fits(const Row *row, const char *path, bool of_output)
{
    regmatch_t at;
    if (row->of_output != of_output || regexec(&row->expression, path, 1, &at, 0)) return false;
    return !of_output || (at.rm_so == 0 && path[at.rm_eo] == '\0');
}

/* The row for the path of a variable or of an output; NULL if there is none. */
static CornuStatus row_of(CornuLayoutMap *map, const char *path, bool of_output, Row **found)
{
    *found = NULL;
    for (int i = 0; i < map->count && !*found; i++)
        if (!strcmp(map->rows[i].pattern, path)) *found = &map->rows[i];
    if (*found) return CORNU_OK;
    for (int i = 0; i < map->count; i++) {
        Row *row = &map->rows[i];
        if (!fits(row, path, of_output)) continue;
        if (*found)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the layouts of %s and of %s are both for "
                               "it, expected one", path, (*found)->pattern, row->pattern);
        *found = row;
    }
    return CORNU_OK;
}

CornuStatus cornu__layout_find(CornuLayoutMap *map, const CornuMesh *mesh, const char *path,
                               CornuType type, CornuLayout *layout)
{
    Row      *row;
    CornuText text;
    CornuType slice;
    *layout = (CornuLayout){ .cut = { 0 } };
    if (!map) return CORNU_OK;
    CORNU__TRY(row_of(map, path, false, &row));
    if (!row) return CORNU_OK;
    row->used = true;
    if (row->rank > type.shape.rank)
        return cornu__fail(CORNU_ERR_SHAPE, "%s is %s, but its layout is of %d axes", path,
                           cornu_type_print(&text, type), row->rank);
    *layout = row->layout;
    return cornu__fail_prefix(cornu__layout_slice(mesh, *layout, type, &slice), path);
}

CornuStatus cornu__layout_note(CornuLayoutMap *map, const char *path)
{
    Row *row = NULL;
    if (map) CORNU__TRY(row_of(map, path, true, &row));
    if (row) row->used = true;
    return CORNU_OK;
}

CornuStatus cornu__layout_find_output(CornuLayoutMap *map, const CornuMesh *mesh, unsigned data,
                                      const char *path, CornuType type, CornuLayout *layout)
{
    Row      *row = NULL;
    CornuText text;
    CornuType slice;
    *layout = (CornuLayout){ .cut = { 0 } };
    if (map) CORNU__TRY(row_of(map, path, true, &row));
    if (!row) return CORNU_OK;
    if (row->rank > type.shape.rank)
        return cornu__fail(CORNU_ERR_SHAPE, "%s is %s, but its layout is of %d axes", path,
                           cornu_type_print(&text, type), row->rank);
    *layout = row->layout;
    layout->cut[0] &= (unsigned char)~data;
    if (cornu__layout_axes(*layout) & data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "layout of %s: the axis of the mesh over which the "
                           "rows of a batch are dealt can cut axis 0 alone", path);
    return cornu__fail_prefix(cornu__layout_slice(mesh, *layout, type, &slice), path);
}

const char *cornu__layout_unused(const CornuLayoutMap *map, bool *of_output)
{
    for (int i = 0; map && !map->may_be_unused && i < map->count; i++) {
        *of_output = map->rows[i].of_output;
        if (!map->rows[i].used) return map->rows[i].pattern;
    }
    return NULL;
}

/* ---- Of a device ---- */

CornuStatus cornu_device_set_mesh(CornuDevice *device, const CornuMesh *mesh, const char *batch,
                                  const CornuLayoutRow *rows)
{
    CornuMeshText text;
    CORNU__NEED(device);
    CORNU__NEED(mesh);
    CORNU__TRY(cornu_mesh_check(mesh));
    const int named = cornu_mesh_axis(mesh, batch ? batch : "batch");
    const int axis = named < 0 && !batch ? 0 : named;
    if (axis < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the mesh %s has no axis \"%s\" to deal the rows of "
                           "a batch over", cornu_mesh_print(&text, mesh), batch);
    if (cornu_mesh_size(mesh, ~0u) != device->shards || device->buffers || device->mesh.axes)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the mesh %s is for a new device of %d shards, this "
                           "one has %d%s", cornu_mesh_print(&text, mesh),
                           cornu_mesh_size(mesh, ~0u), device->shards,
                           device->mesh.axes ? " and a mesh"
                           : device->buffers ? " and buffers" : "");
    CornuLayoutMap *map = rows ? cornu__layout_map(mesh, rows) : NULL;
    if (rows && !map) return cornu_error_take();
    device->mesh = *mesh;
    device->data = 1u << axis;
    device->layouts = map;
    device->free_layouts = cornu__layout_map_free;
    device->partition = cornu__partition_laid;
    return CORNU_OK;
}

CornuStatus cornu_device_shard_fully(CornuDevice *device)
{
    CORNU__NEED(device);
    if (device->mesh.axes == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "fully sharded: the device has no mesh, expected "
                           "cornu_device_set_mesh before");
    device->fully_sharded = true;
    return CORNU_OK;
}

CornuStatus cornu_device_allow_unused_layouts(CornuDevice *device)
{
    CORNU__NEED(device);
    if (!device->layouts)
        return cornu__fail(CORNU_ERR_ARGUMENT, "unused layouts: the device has no layout map, "
                           "expected cornu_device_set_mesh with rows before");
    device->layouts->may_be_unused = true;
    return CORNU_OK;
}

const char *cornu_device_unused_layout(const CornuDevice *device, int i)
{
    CORNU__NEED_OR(device, NULL);
    const CornuLayoutMap *map = device->layouts;
    for (int k = 0; map && k < map->count; k++)
        if (!map->rows[k].used && i-- == 0) return map->rows[k].pattern;
    return NULL;
}

/* The first axis that is left and divides is cut by these axes of the mesh. */
static void cut_further(const CornuMesh *mesh, unsigned axes, CornuType type, CornuLayout *layout)
{
    const int64_t parts = cornu_mesh_size(mesh, axes);
    if (parts == 1 || type.shape.rank < 2 || cornu__layout_axes(*layout) & axes ||
        cornu_type_count(type) < CORNU_SHARDED_ELEMENTS)
        return;
    for (int i = 0; i < type.shape.rank; i++)
        if (!layout->cut[i] && type.shape.extent[i] % parts == 0) {
            layout->cut[i] = (unsigned char)axes;
            return;
        }
}

CornuStatus cornu__device_layout(const CornuDevice *device, const char *path, CornuType type,
                                 bool by_rows, int blocks, CornuLayout *layout)
{
    const int last = type.shape.rank - 1;
    CORNU__TRY(cornu__layout_find(device->layouts, &device->mesh, path, type, layout));
    if (blocks > 1 && layout->cut[last] && type.shape.extent[last] % blocks == 0 &&
        type.shape.extent[last] / blocks % cornu_mesh_size(&device->mesh, layout->cut[last]) == 0)
        layout->blocks[last] = (unsigned char)blocks;
    if (device->fully_sharded && !by_rows) cut_further(&device->mesh, device->data, type, layout);
    return CORNU_OK;
}

CornuStatus cornu__device_note_output(const CornuDevice *device, const char *path)
{
    return cornu__layout_note(device->layouts, path);
}

CornuStatus cornu__device_output_layout(const CornuDevice *device, const char *path, CornuType type,
                                        CornuLayout *layout)
{
    return cornu__layout_find_output(device->layouts, &device->mesh, device->data, path, type,
                                     layout);
}

const char *cornu__device_unused_layout(const CornuDevice *device, bool *of_output)
{
    return cornu__layout_unused(device->layouts, of_output);
}
