/* Variables: their memory, reading and writing them from the host, packing. */
#include "../device/device_internal.h"
#include "../device/integer_internal.h"
#include "../device/lookup_internal.h"
#include "tensor_internal.h"

static bool is_cut(const CornuVariable *variable)
{
    return cornu__layout_axes(variable->layout) != 0;
}

bool cornu_variable_is_cut(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, false);
    return is_cut(variable);
}

const CornuLayout *cornu_variable_layout(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, NULL);
    return &variable->layout;
}

/* Allocates memory of its own, all zeros, which packing replaces. */
static CornuStatus allocate_variable(CornuVariable *variable)
{
    const bool per_shard = variable->spread != CORNU_SHARED || is_cut(variable);
    CornuType  type = cornu__variable_shard_type(variable);
    CORNU__TRY(cornu__fail_prefix(cornu__layout_slice(cornu_device_mesh(variable->device),
                                                      variable->layout, type, &type),
                                  variable->name));
    if (per_shard) type = cornu__parts_type(variable->device, type);
    variable->buffer = cornu_buffer_create(variable->device, type, .use = variable->use,
                                           .name = variable->name, .per_shard = per_shard);
    return variable->buffer ? CORNU_OK : cornu_error_status();
}

CornuVariable *cornu_variable_create_from(const CornuVariableConfig *config)
{
    const char *name = config->name ? config->name : "";
    if (!config->device || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "variable %s: no device given", name);
    if (config->spread == CORNU_DUPLICATED)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "variable %s: only packed variables are "
                                "duplicated, expected another spread", name);
    if (config->spread == CORNU_SLICED && config->type.shape.rank < 1)
        return cornu__fail_null(CORNU_ERR_SHAPE, "variable %s: a scalar, expected an axis to slice",
                                name);
    if (config->spread != CORNU_SHARED && config->type.shape.rank >= CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_SHAPE, "variable %s: rank %d, expected at most %d of "
                                "what the shards have parts of", name, config->type.shape.rank,
                                CORNU_MAX_RANK - 1);
    CornuVariable *variable = cornu__allocate(1, sizeof *variable);
    if (!variable) return cornu__null();
    variable->device = config->device;
    variable->type = config->type;
    variable->made = config->spread;
    variable->spread = config->spread == CORNU_SLICED && cornu_device_shards(config->device) == 1
                     ? CORNU_SHARED : config->spread;
    variable->precision = config->precision;
    variable->use = config->use;
    variable->sparse_gradient = config->sparse_gradient;
    if (config->layout) variable->layout = *config->layout;
    variable->name = cornu__copy_text(name);
    if (variable->name && (config->for_packing || allocate_variable(variable) == CORNU_OK))
        return variable;
    cornu_variable_free(variable);
    return cornu__null();
}

static void destroy(CornuVariable *variable)
{
    cornu_buffer_free(variable->buffer);
    cornu__release(variable->segments);
    cornu__release(variable->name);
    cornu__release(variable);
}

void cornu__whole_release(CornuVariable *whole)
{
    if (--whole->users == 0) destroy(whole);
}

/* Detaches the variable from the packed one that contains it, where its value stays. */
static void leave(CornuVariable *variable)
{
    CornuVariable *whole = variable->whole;
    if (!whole) return;
    int i = 0, end = whole->segment_count;   /* segments are in order: the first that may be its */
    while (i < end) {
        const int middle = i + (end - i) / 2;
        if (whole->segments[middle].first < variable->first) i = middle + 1;
        else end = middle;
    }
    for (; i < whole->segment_count && whole->segments[i].first == variable->first; i++)
        if (whole->segments[i].part == variable) whole->segments[i].part = NULL;
    variable->whole = NULL;
    cornu__whole_release(whole);
}

void cornu_variable_free(CornuVariable *variable)
{
    if (!variable) return;
    leave(variable);
    destroy(variable);
}

CornuType cornu_variable_type(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, (CornuType){ 0 });
    return variable->type;
}

CornuType    cornu_variable_host_type(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, (CornuType){ 0 });
    return variable->spread == CORNU_PER_SHARD
         ? cornu__sharded(variable->type, cornu_device_shards(variable->device)) : variable->type;
}

const char *cornu_variable_name(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, NULL);
    return variable->name;
}

CornuDtype cornu_variable_precision(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, CORNU_F32);
    return variable->precision;
}

CornuDevice *cornu_variable_device(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, NULL);
    return variable->device;
}

bool cornu_variable_has_sparse_gradient(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, false);
    return variable->sparse_gradient;
}

CornuSpread cornu_variable_spread(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, CORNU_SHARED);
    return variable->made;
}

bool cornu_variable_is_sliced(const CornuVariable *variable)
{
    CORNU__NEED_OR(variable, false);
    return variable->spread == CORNU_SLICED;
}

static const CornuVariable *owner_of(const CornuVariable *variable)
{
    return variable->whole ? variable->whole : variable;
}

/* Whether each shard has a part of it, or of the packed variable that contains it. */
static bool has_parts(const CornuVariable *variable)
{
    return owner_of(variable)->spread != CORNU_SHARED;
}

int cornu_variable_value_count(const CornuVariable *variable)
{
    return owner_of(variable)->spread == CORNU_DUPLICATED ? cornu_device_shards(variable->device)
                                                          : 1;
}

/* The buffer with value i of the variable, which starts at element *first; NULL, with a failure
 * recorded, if there is no such value or the variable is yet to be packed. */
static CornuBuffer *storage(const CornuVariable *variable, int i, int64_t *first)
{
    const CornuVariable *owner = owner_of(variable);
    CornuBuffer         *buffer = owner->buffer;
    const int            count = cornu_variable_value_count(variable);
    *first = i * cornu_type_count(owner->type) + (variable->whole ? variable->first : 0);
    if (i < 0 || i >= count) {
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: value %d does not exist, expected 0 to %d",
                    variable->name, i, count - 1);
        return NULL;
    }
    if (!buffer)
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: has no memory yet; cornu_variable_pack "
                    "allocates it", variable->name);
    return buffer;
}

static CornuStatus expect_type(const CornuVariable *variable, CornuArray array, const char *verb)
{
    CornuText       a, b;
    const CornuType expected = cornu_variable_host_type(variable);
    if (cornu_type_equal(expected, array.type)) return CORNU_OK;
    return cornu__fail(expected.dtype == array.type.dtype ? CORNU_ERR_SHAPE : CORNU_ERR_DTYPE,
                       "%s: the array %s is %s, expected %s", variable->name, verb,
                       cornu_type_print(&a, array.type), cornu_type_print(&b, expected));
}

CornuStatus cornu_variable_write_value(CornuVariable *variable, int i, CornuArray from)
{
    CORNU__TRY(expect_type(variable, from, "written"));
    variable->draw = NULL;
    if (variable->whole && variable->whole->draw)
        CORNU__TRY(cornu__variable_settle(variable->whole));
    int64_t      first;
    CornuBuffer *buffer = storage(variable, i, &first);
    if (!buffer) return CORNU_ERR_ARGUMENT;
    return cornu__fail_prefix(
        is_cut(variable) ? cornu__slices_write(buffer, variable->layout, from)
        : has_parts(variable) ? cornu__parts_write(buffer, first, from)
                              : cornu_buffer_write_part(buffer, first, from), variable->name);
}

CornuStatus cornu_variable_read_value(const CornuVariable *variable, int i, CornuArray to)
{
    CORNU__TRY(expect_type(variable, to, "read into"));
    if (variable->draw)
        return cornu__fail_prefix(variable->draw(variable->drawn_of, to), variable->name);
    if (variable->segments || (variable->whole && variable->whole->draw))
        CORNU__TRY(cornu__variable_settle((CornuVariable *)(uintptr_t)owner_of(variable)));
    int64_t      first;
    CornuBuffer *buffer = storage(variable, i, &first);
    if (!buffer) return CORNU_ERR_ARGUMENT;
    return cornu__fail_prefix(
        is_cut(variable) ? cornu__slices_read(buffer, variable->layout, to)
        : has_parts(variable) ? cornu__parts_read(buffer, first, to)
                              : cornu_buffer_read_part(buffer, first, to), variable->name);
}

CornuStatus cornu_variable_write(CornuVariable *variable, CornuArray from)
{
    CORNU__NEED(variable);
    for (int i = 0; i < cornu_variable_value_count(variable); i++)
        CORNU__TRY(cornu_variable_write_value(variable, i, from));
    return CORNU_OK;
}

CornuStatus cornu_variable_read(const CornuVariable *variable, CornuArray to)
{
    CORNU__NEED(variable);
    return cornu_variable_read_value(variable, 0, to);
}

/* ---- Drawn later ---- */

bool cornu__variable_waits(const CornuVariable *variable)
{
    const CornuBuffer *buffer = owner_of(variable)->buffer;
    return buffer && buffer->empty;
}

void cornu__variable_draw_later(CornuVariable *variable,
                                CornuStatus (*draw)(const void *of, CornuArray to), const void *of)
{
    variable->draw = draw;
    variable->drawn_of = of;
}

static CornuStatus draw_filled(const void *of, CornuArray to)
{
    const CornuVariable *variable = of;
    for (int64_t i = 0; i < cornu_type_count(to.type); i++)
        cornu_array_set(to, i, variable->filled);
    return CORNU_OK;
}

static CornuStatus settle(CornuVariable *variable)
{
    const CornuBuffer *buffer = owner_of(variable)->buffer;
    const CornuType    type = cornu_variable_host_type(variable);
    if (!variable->draw) return CORNU_OK;
    if (buffer && buffer->away) {   /* whoever has it draws it */
        variable->draw = NULL;
        return CORNU_OK;
    }
    CornuArray  drawn = cornu_array_from(cornu__allocate(cornu_type_bytes(type) + 1, 1), type);
    CornuStatus status = drawn.data ? cornu_variable_read(variable, drawn) : CORNU_ERR_MEMORY;
    if (!status) status = cornu_variable_write(variable, drawn);
    cornu__release(drawn.data);
    return status;
}

CornuStatus cornu__variable_settle(CornuVariable *variable)
{
    if (variable->whole) CORNU__TRY(settle(variable->whole));
    CORNU__TRY(settle(variable));
    for (int i = 0; i < variable->segment_count; i++)
        if (variable->segments[i].part) CORNU__TRY(settle(variable->segments[i].part));
    return CORNU_OK;
}

CornuStatus cornu__variable_fill(CornuVariable *variable, double value)
{
    variable->filled = value;
    cornu__variable_draw_later(variable, draw_filled, variable);
    return cornu__variable_waits(variable) ? CORNU_OK : settle(variable);
}

/* ---- Packing ---- */

enum { SEGMENT_BYTES = 64 };

int64_t cornu__segment_of(CornuDtype dtype)
{
    return SEGMENT_BYTES / (int64_t)cornu_dtype_size(dtype);
}

CornuType cornu__variable_shard_type(const CornuVariable *variable)
{
    CornuType type = variable->type;
    if (variable->spread == CORNU_SLICED)
        type.shape.extent[0] = ceil_divide(type.shape.extent[0],
                                           cornu_device_shards(variable->device));
    return type;
}

int64_t cornu__variable_shard_bytes(const CornuVariable *variable)
{
    CornuType     type = variable->type;
    const int64_t shards = cornu_device_shards(variable->device);
    if (is_cut(variable) &&
        cornu__layout_slice(cornu_device_mesh(variable->device), variable->layout, type, &type))
        cornu_error_take();
    const int64_t bytes = (int64_t)cornu_type_bytes(type);
    return owner_of(variable)->spread == CORNU_SLICED ? ceil_divide(bytes, shards) : bytes;
}

static CornuStatus check_distinct(CornuVariable *const *parts, int count)
{
    CornuLookup seen = { .count = 0 };
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < count && !status; i++) {
        if (cornu__lookup_find(&seen, parts[i]) >= 0)
            status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: is listed twice", parts[i]->name);
        else status = cornu__lookup_set(&seen, parts[i], i);
    }
    cornu__lookup_clear(&seen);
    return status;
}

static CornuStatus check_parts(CornuVariable *const *parts, int count)
{
    if (count < 1) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_variable_pack: no variable given");
    for (int i = 0; i < count; i++) {
        const CornuVariable *v = parts[i];
        if (v->segments)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is a packed variable and cannot be packed "
                               "again", v->name);
        if (v->spread != CORNU_SHARED)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is %s, expected CORNU_SHARED to pack it",
                               v->name, v->spread == CORNU_SLICED ? "CORNU_SLICED"
                                                                  : "CORNU_PER_SHARD");
        if (v->device != parts[0]->device)
            return cornu__fail(CORNU_ERR_DEVICE, "%s: is on device %s, but %s on %s; expected one "
                               "device", v->name, cornu_device_name(v->device), parts[0]->name,
                               cornu_device_name(parts[0]->device));
        if (v->type.dtype != parts[0]->type.dtype)
            return cornu__fail(CORNU_ERR_DTYPE, "%s: is %s, but %s is %s; expected one dtype",
                               v->name, cornu_dtype_name(v->type.dtype), parts[0]->name,
                               cornu_dtype_name(parts[0]->type.dtype));
    }
    return check_distinct(parts, count);
}

/* The variable into which just these parts are packed already, or NULL. */
static CornuVariable *packed_so(CornuVariable *const *parts, int count, CornuSpread spread)
{
    CornuVariable *whole = parts[0]->whole;
    if (!whole || whole->segment_count != count || whole->spread != spread) return NULL;
    for (int i = 0; i < count; i++)
        if (whole->segments[i].part != parts[i]) return NULL;
    return whole;
}

/* A packed variable with the layout for these parts, without memory yet. */
static CornuVariable *lay_out_packed(CornuVariable *const *parts, int count, CornuSpread spread,
                                     const char *name)
{
    const CornuDtype     dtype = parts[0]->type.dtype;
    CornuAttributes_PACK layout = { .segment = cornu__segment_of(dtype) };
    CornuVariable *whole = cornu__allocate(1, sizeof *whole);
    if (!whole) return NULL;
    whole->device = parts[0]->device;
    whole->spread = spread;
    whole->use = parts[0]->use;
    whole->name = cornu__copy_text(name ? name : "");
    whole->segments = cornu__allocate((size_t)count, sizeof *whole->segments);
    whole->segment_count = count;
    int64_t end = 0;
    for (int i = 0; i < count && whole->segments; i++) {
        const int64_t first = cornu__pack_start(&layout, end);
        const int64_t each = cornu_type_count(parts[i]->type);
        whole->segments[i] = (CornuSegment){ .first = first, .count = each };
        end = first + each;
    }
    layout.segment *= cornu_device_shards(whole->device);
    whole->type = cornu_type(dtype, cornu__pack_start(&layout, end));
    if (whole->name && whole->segments) return whole;
    destroy(whole);
    return NULL;
}

static CornuArray value_in(const CornuVariable *whole, void *values, int i, CornuType type)
{
    const size_t offset = (size_t)whole->segments[i].first * cornu_dtype_size(type.dtype);
    return cornu_array_from((char *)values + offset, type);
}

/* Moves the parts' values into the whole, by way of the host, so that the device never holds them
 * twice. If there is no memory for the whole they are moved back. */
static CornuStatus move_values(CornuVariable *whole, CornuVariable *const *parts, void *values)
{
    for (int i = 0; i < whole->segment_count; i++)
        if (parts[i]->buffer || parts[i]->whole)
            CORNU__TRY(cornu_variable_read(parts[i], value_in(whole, values, i, parts[i]->type)));
    for (int i = 0; i < whole->segment_count; i++) {
        if (parts[i]->buffer) whole->segments[i].part = parts[i];   /* restored on failure */
        cornu_buffer_free(parts[i]->buffer);
        parts[i]->buffer = NULL;
    }
    CornuStatus status = allocate_variable(whole);
    for (int i = 0; i < whole->segment_count && !status; i++) parts[i]->draw = NULL;
    if (!status) return cornu_variable_write(whole, cornu_array_from(values, whole->type));
    cornu_error_take();
    for (int i = 0; i < whole->segment_count; i++)
        if (whole->segments[i].part && allocate_variable(parts[i]) == CORNU_OK)
            cornu_variable_write(parts[i], value_in(whole, values, i, parts[i]->type));
    return status;
}

/* Whether all were made for packing, or have no memory yet: the whole is all zeros. */
static bool have_no_values(CornuVariable *const *parts, int count)
{
    for (int i = 0; i < count; i++)
        if ((parts[i]->buffer || parts[i]->whole) &&
            !(parts[i]->draw && cornu__variable_waits(parts[i])))
            return false;
    return true;
}

static CornuStatus allocate_empty(CornuVariable *whole, CornuVariable *const *parts, int count)
{
    CORNU__TRY(allocate_variable(whole));
    for (int i = 0; i < count; i++) {
        cornu_buffer_free(parts[i]->buffer);
        parts[i]->buffer = NULL;
    }
    return CORNU_OK;
}

CornuVariable *cornu_variable_pack(CornuVariable *const *parts, int count, CornuSpread spread,
                                   const char *name)
{
    if (cornu_error_pending() || check_parts(parts, count)) return cornu__null();
    if (spread == CORNU_PER_SHARD)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_variable_pack: the spread is "
                                "CORNU_PER_SHARD, expected CORNU_SHARED, CORNU_SLICED or "
                                "CORNU_DUPLICATED");
    CornuVariable *whole = packed_so(parts, count, spread);
    if (whole) return whole;
    if (!(whole = lay_out_packed(parts, count, spread, name))) return cornu__null();
    const bool  empty = have_no_values(parts, count);
    void       *values = empty ? NULL : cornu__allocate(cornu_type_bytes(whole->type), 1);
    CornuStatus status = empty ? allocate_empty(whole, parts, count)
                       : values ? move_values(whole, parts, values) : CORNU_ERR_MEMORY;
    cornu__release(values);
    if (status) {
        destroy(whole);
        return cornu__null();
    }
    for (int i = 0; i < count; i++) {
        leave(parts[i]);
        parts[i]->whole = whole;
        parts[i]->first = whole->segments[i].first;
        whole->segments[i].part = parts[i];
        whole->users++;
    }
    return whole;
}

CornuStatus cornu_variable_copy(CornuVariable *to, const CornuVariable *from)
{
    const CornuType type = cornu_variable_host_type(from);
    if (from->draw && cornu__variable_waits(to)) {
        cornu__variable_draw_later(to, from->draw, from->drawn_of);
        return CORNU_OK;
    }
    CornuArray      host = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!host.data) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu_variable_read(from, host);
    if (!status) status = cornu_variable_write(to, host);
    cornu__release(host.data);
    return status;
}

static CornuStatus expect_scalar(const CornuVariable *variable)
{
    CornuText text;
    if (variable->type.shape.rank == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: is %s, expected a scalar", variable->name,
                       cornu_type_print(&text, variable->type));
}

CornuStatus cornu_variable_set(CornuVariable *variable, double value)
{
    CORNU__NEED(variable);
    CORNU__TRY(expect_scalar(variable));
    int64_t    space;   /* large enough for any dtype */
    CornuArray scalar = cornu_array_from(&space, variable->type);
    cornu_array_set(scalar, 0, value);
    return cornu_variable_write(variable, scalar);
}

CornuStatus cornu_variable_get(const CornuVariable *variable, double *value)
{
    CORNU__NEED(variable);
    CORNU__TRY(expect_scalar(variable));
    int64_t    space;
    CornuArray scalar = cornu_array_from(&space, variable->type);
    CORNU__TRY(cornu_variable_read(variable, scalar));
    *value = cornu_array_get(scalar, 0);
    return CORNU_OK;
}
