#include "feature_internal.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../images/image.h"

/* ---- The table ---- */

static bool is_string(CornuFeatureKind kind)
{
    return kind == CORNU_FEATURE_BYTES || kind == CORNU_FEATURE_IMAGE;
}

bool cornu__feature_is_padded(const CornuFeatureRow *row)
{
    const CornuFeatureKind kind = row->feature.kind;
    return row->feature.sequence || kind == CORNU_FEATURE_VAR || kind == CORNU_FEATURE_BYTES;
}

static bool dtype_fits(const CornuFeatureRow *row)
{
    const CornuDtype dtype = row->type.dtype;
    if (row->feature.kind == CORNU_FEATURE_RAW) return (unsigned)dtype < CORNU_DTYPE_COUNT;
    return (unsigned)dtype < CORNU_DTYPE_COUNT && dtype != CORNU_F16 && dtype != CORNU_BF16;
}

static CornuStatus check_shape(const CornuFeatureRow *row, const char *name)
{
    const CornuFeature *feature = &row->feature;
    const CornuShape    shape = row->step.shape;
    CornuText           text;
    if (cornu_type_check(row->type)) return cornu__fail_prefix(cornu_error_status(), name);
    if (feature->kind == CORNU_FEATURE_IMAGE) {
        bool fits = shape.rank == 3 && (shape.extent[2] == 1 || shape.extent[2] == 3);
        for (int i = 0; i < 2 && fits; i++)
            fits = shape.extent[i] >= 1 && shape.extent[i] <= CORNU_IMAGE_EXTENT;
        if (!fits)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: an image of %s, expected (H, W, 1) or (H, W, "
                               "3), each at most %d", name, cornu_shape_print(&text, shape),
                               CORNU_IMAGE_EXTENT);
    }
    if (feature->kind == CORNU_FEATURE_BYTES && shape.rank != 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: a string of %s, expected (length)", name,
                           cornu_shape_print(&text, shape));
    return CORNU_OK;
}

static CornuStatus check_row(CornuFeatureRow *row, const char *name)
{
    const CornuFeature *feature = &row->feature;
    if ((unsigned)feature->kind > CORNU_FEATURE_IMAGE)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .kind %d is not known, expected "
                           "CORNU_FEATURE_FIXED to IMAGE", name, (int)feature->kind);
    if (feature->sequence && feature->kind == CORNU_FEATURE_VAR)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .sequence with VAR; each step of a sequence "
                           "has as many numbers", name);
    if (cornu__feature_is_padded(row) && feature->shape.rank < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: is padded, expected a .shape with the length, "
                           "such as cornu_shape(64)", name);
    if (!cornu__feature_is_padded(row) && (feature->count || feature->truncate))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is given, but nothing is padded", name,
                           feature->count ? ".count" : ".truncate");
    if (feature->resize && feature->kind != CORNU_FEATURE_IMAGE)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .resize is for images", name);
    if (!dtype_fits(row))
        return cornu__fail(CORNU_ERR_DTYPE, "%s: .dtype %s, expected f32, f64, i64, i32, u32, u8 "
                           "or bool", name, cornu_dtype_name(row->type.dtype));
    return check_shape(row, name);
}

/* Adds a component to the data set. */
static CornuStatus add_component(CornuDataset *dataset, CornuType type, const char *name)
{
    if (dataset->components == CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: more than %d components", name,
                           CORNU_MAX_COMPONENTS);
    dataset->type[dataset->components] = type;
    dataset->bytes[dataset->components++] = cornu_type_bytes(type);
    return CORNU_OK;
}

static CornuStatus read_row(CornuFeatureRow *row, const CornuFeature *given, CornuDataset *dataset)
{
    const CornuDtype dtype = is_string(given->kind) ? CORNU_U8 : given->dtype;
    row->feature = *given;
    row->feature.default_value = NULL;
    row->feature.name = cornu__copy_text(given->name);
    if (!row->feature.name) return CORNU_ERR_MEMORY;
    row->name_length = strlen(given->name);
    row->type = row->step = cornu_type_from(dtype, given->shape);
    if (given->sequence && given->shape.rank > 0)
        row->step.shape = cornu_shape_from(given->shape.rank - 1, given->shape.extent + 1);
    CORNU__TRY(check_row(row, given->name));
    row->bytes = cornu_type_bytes(row->type);
    row->step_bytes = cornu_type_bytes(row->step);
    row->component = dataset->components;
    if (given->default_value) {
        void *copy = cornu__allocate(row->bytes, 1);
        if (!copy) return CORNU_ERR_MEMORY;
        row->feature.default_value = memcpy(copy, given->default_value, row->bytes);
    }
    CORNU__TRY(add_component(dataset, row->type, given->name));
    return given->count ? add_component(dataset, cornu_scalar(CORNU_I32), given->name) : CORNU_OK;
}

CornuStatus cornu__features_read(CornuFeatureTable *table, const CornuFeature *features,
                                 const char *what, CornuDataset *dataset)
{
    int count = 0;
    *table = (CornuFeatureTable){ .rows = NULL };
    while (features && features[count].name && count <= CORNU_MAX_COMPONENTS) count++;
    if (count < 1 || count > CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d features, expected 1 to %d, then one "
                           "without a name", what, count, CORNU_MAX_COMPONENTS);
    table->rows = cornu__allocate((size_t)count, sizeof *table->rows);
    if (!table->rows) return CORNU_ERR_MEMORY;
    for (; table->count < count; table->count++) {
        const char *name = features[table->count].name;
        if (cornu__features_find(table, name, strlen(name)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: two features are called \"%s\"", what,
                               name);
        const CornuStatus status = read_row(&table->rows[table->count], &features[table->count],
                                            dataset);
        if (status) {
            table->count++;   /* to be freed */
            return cornu__fail_prefix(status, what);
        }
    }
    return CORNU_OK;
}

void cornu__features_free(CornuFeatureTable *table)
{
    for (int i = 0; i < table->count; i++) {
        cornu__release((void *)table->rows[i].feature.name);
        cornu__release((void *)table->rows[i].feature.default_value);
    }
    cornu__release(table->rows);
    *table = (CornuFeatureTable){ .rows = NULL };
}

CornuFeatureRow *cornu__features_find(const CornuFeatureTable *table, const void *name,
                                      size_t length)
{
    for (int i = 0; i < table->count; i++) {
        CornuFeatureRow *row = &table->rows[i];
        if (row->name_length == length && !memcmp(row->feature.name, name, length)) return row;
    }
    return NULL;
}

/* ---- Components ---- */

/* Extent of axis 0 of what is padded. */
static int64_t length_of(const CornuFeatureRow *row) { return row->type.shape.extent[0]; }

void cornu__feature_end(const CornuFeatureRow *row, int64_t used, void *const *to)
{
    if (cornu__feature_is_padded(row) && used < length_of(row)) {
        const size_t  part = row->bytes / (size_t)length_of(row);
        unsigned char *at = (unsigned char *)to[row->component] + (size_t)used * part;
        const size_t  left = (size_t)(length_of(row) - used) * part;
        const double  padding = row->feature.padding;
        CornuArray    array = { .type = row->type, .data = at };
        const int64_t count = (int64_t)(left / cornu_dtype_size(row->type.dtype));
        if (padding == 0.0) memset(at, 0, left);
        else for (int64_t i = 0; i < count; i++) cornu_array_set(array, i, padding);
    }
    if (row->feature.count) *(int32_t *)to[row->component + 1] = (int32_t)used;
}

CornuStatus cornu__feature_missing(const CornuFeatureRow *row, void *const *to)
{
    if (row->feature.default_value) {
        memcpy(to[row->component], row->feature.default_value, row->bytes);
        if (row->feature.count) *(int32_t *)to[row->component + 1] = (int32_t)length_of(row);
        return CORNU_OK;
    }
    if (!cornu__feature_is_padded(row))
        return cornu__fail(CORNU_ERR_FORMAT, "is missing, and has no default value");
    cornu__feature_end(row, 0, to);
    return CORNU_OK;
}

CornuStatus cornu__feature_fits(const CornuFeatureRow *row, int64_t count, int64_t *fitting)
{
    const int64_t all = cornu_type_count(row->step);
    const bool    padded = row->feature.kind == CORNU_FEATURE_VAR ||
                           row->feature.kind == CORNU_FEATURE_BYTES;
    *fitting = count < all ? count : all;
    if (!padded && count != all)
        return cornu__fail(CORNU_ERR_FORMAT, "has %lld values, expected %lld", (long long)count,
                           (long long)all);
    if (count > all && !row->feature.truncate)
        return cornu__fail(CORNU_ERR_FORMAT, "has %lld values, expected at most %lld; .truncate "
                           "takes the first ones", (long long)count, (long long)all);
    const int64_t part = padded && length_of(row) && !row->feature.sequence
                             ? all / length_of(row) : 1;
    if (part > 1 && count % part)
        return cornu__fail(CORNU_ERR_FORMAT, "has %lld values, expected a multiple of %lld",
                           (long long)count, (long long)part);
    return CORNU_OK;
}

static CornuStatus copy_image(const CornuFeatureRow *row, const unsigned char *bytes, size_t size,
                              void *to)
{
    const int64_t *wanted = row->step.shape.extent;
    CornuArray     image;
    CORNU__TRY(cornu_image_decode("image", bytes, size, (int)wanted[2], &image));
    const int64_t *extent = image.type.shape.extent;
    CornuStatus    status = CORNU_OK;
    if (!row->feature.resize && (extent[0] != wanted[0] || extent[1] != wanted[1]))
        status = cornu__fail(CORNU_ERR_FORMAT, "is an image of %lld x %lld pixels, expected %lld x "
                             "%lld; .resize resizes it", (long long)extent[0],
                             (long long)extent[1], (long long)wanted[0], (long long)wanted[1]);
    else
        status = cornu_image_resize(image, CORNU_IMAGE_BILINEAR, false,
                                    cornu_array_from(to, row->step));
    free(image.data);
    return status;
}

/* Little-endian numbers of `size` bytes each become the host's. */
static void copy_numbers(void *to, const unsigned char *from, size_t bytes, size_t size)
{
    static const uint16_t one = 1;
    memcpy(to, from, bytes);
    if (*(const unsigned char *)&one == 1 || size == 1) return;
    for (unsigned char *at = to; at < (unsigned char *)to + bytes; at += size)
        for (size_t k = 0; k < size / 2; k++) {
            const unsigned char byte = at[k];
            at[k] = at[size - 1 - k];
            at[size - 1 - k] = byte;
        }
}

CornuStatus cornu__feature_bytes(const CornuFeatureRow *row, const unsigned char *bytes,
                                 size_t size, void *to, int64_t *used)
{
    int64_t fitting = 1;
    if (row->feature.kind == CORNU_FEATURE_IMAGE) {
        CORNU__TRY(copy_image(row, bytes, size, to));
    } else if (row->feature.kind == CORNU_FEATURE_BYTES) {
        CORNU__TRY(cornu__feature_fits(row, (int64_t)size, &fitting));
        memcpy(to, bytes, (size_t)fitting);
        /* A shorter step of a sequence; else cornu__feature_end pads. */
        memset((char *)to + fitting, 0, row->step_bytes - (size_t)fitting);
    } else {
        if (size != row->step_bytes)
            return cornu__fail(CORNU_ERR_FORMAT, "has %zu bytes, expected %zu", size,
                               row->step_bytes);
        copy_numbers(to, bytes, size, cornu_dtype_size(row->type.dtype));
    }
    *used = fitting;
    return CORNU_OK;
}
