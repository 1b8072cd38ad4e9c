/* Files of a sample as components. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/text/print.h"
#include "../arrays/npy_internal.h"
#include "tar_internal.h"

CornuTarSource cornu__tar_source(const CornuFeatureRow *row)
{
    const char *name = row->feature.name;
    if (!strncmp(name, "json", 4) && (!name[4] || name[4] == ':')) return CORNU__TAR_JSON;
    return !strcmp(name, "npy") ? CORNU__TAR_NPY : CORNU__TAR_TEXT;
}

/* ---- Numbers, one after the other ---- */

/* Those beyond the component are counted. */
typedef struct {
    const CornuFeatureRow *row;
    void                  *to;
    int64_t                count, most;
} Numbers;

static CornuStatus put_integer(Numbers *numbers, int64_t value)
{
    const CornuDtype dtype = numbers->row->type.dtype;
    const int64_t    i = numbers->count++;
    if (i >= numbers->most) return CORNU_OK;
    if (!cornu_dtype_is_float(dtype)) return cornu__feature_integer(dtype, value, numbers->to, i);
    cornu_array_set(cornu_array_from(numbers->to, numbers->row->type), i, (double)value);
    return CORNU_OK;
}

static CornuStatus put_real(Numbers *numbers, double value)
{
    const CornuDtype dtype = numbers->row->type.dtype;
    const int64_t    i = numbers->count++;
    if (i >= numbers->most) return CORNU_OK;
    if (!cornu_dtype_is_float(dtype))
        return cornu__fail(CORNU_ERR_FORMAT, "value %lld is %g, expected a whole number for %s",
                           (long long)i, value, cornu_dtype_name(dtype));
    cornu_array_set(cornu_array_from(numbers->to, numbers->row->type), i, value);
    return CORNU_OK;
}

static CornuStatus end_numbers(const Numbers *numbers, int64_t *used)
{
    const CornuFeatureRow *row = numbers->row;
    int64_t                fitting;
    CORNU__TRY(cornu__feature_fits(row, numbers->count, &fitting));
    *used = 0;
    if (row->feature.kind == CORNU_FEATURE_VAR && fitting)
        *used = fitting / (cornu_type_count(row->type) / row->type.shape.extent[0]);
    return CORNU_OK;
}

/* Decimal numbers, divided by blanks or commas; of a string that is NUL-terminated. */
static CornuStatus read_text(const char *text, Numbers *numbers)
{
    static const char blanks[] = " \t\r\n,";
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        char           *end;
        const size_t    length = strcspn(text, blanks);
        errno = 0;
        const long long whole = strtoll(text, &end, 10);
        if (end == text + length && !errno) {
            CORNU__TRY(put_integer(numbers, whole));
        } else {
            const double real = cornu__parse_number(text, &end);
            if (end != text + length || !isfinite(real))
                return cornu__fail(CORNU_ERR_FORMAT, "value %lld is \"%.*s\", expected a number",
                                   (long long)numbers->count, length < 30 ? (int)length : 30, text);
            CORNU__TRY(put_real(numbers, real));
        }
        text += length;
    }
    return CORNU_OK;
}

static CornuStatus decode_text(const unsigned char *bytes, size_t size, Numbers *numbers)
{
    char *text = cornu__allocate(size + 1, 1);
    if (!text) return CORNU_ERR_MEMORY;
    if (size) memcpy(text, bytes, size);
    const CornuStatus status = strlen(text) == size
                                   ? read_text(text, numbers)
                                   : cornu__fail(CORNU_ERR_FORMAT, "has a byte 0, expected decimal "
                                                 "numbers");
    cornu__release(text);
    return status;
}

/* ---- .npy ---- */

static CornuStatus copy_array(const CornuNpy *npy, const unsigned char *elements, int64_t count,
                              void *to)
{
    const int64_t  all = cornu_type_count(npy->type);
    unsigned char *rows = NULL;
    if (npy->column_major) {
        rows = cornu__allocate((size_t)all, npy->dtype->size);
        if (!rows) return CORNU_ERR_MEMORY;
        cornu__npy_transpose(npy->type.shape, npy->dtype->size, elements, 1, rows);
    }
    cornu__npy_convert(npy, rows ? rows : elements, count, to);
    cornu__release(rows);
    return CORNU_OK;
}

static CornuStatus decode_npy(const CornuFeatureRow *row, const unsigned char *bytes, size_t size,
                              void *to, int64_t *used)
{
    CornuNpy     npy;
    size_t       header;
    CornuText    one, other;
    const size_t first = size < CORNU__NPY_START ? size : CORNU__NPY_START;
    CORNU__TRY(cornu__npy_header_size(bytes, first, &header));
    if (header > size)
        return cornu__fail(CORNU_ERR_FORMAT, "has a header of %zu bytes in a file of %zu", header,
                           size);
    CORNU__TRY(cornu__npy_parse(bytes, header, &npy));
    if ((int64_t)(size - header) != cornu__npy_bytes(&npy))
        return cornu__fail(CORNU_ERR_FORMAT, "%s takes %lld bytes, the file has %zu",
                           cornu_type_print(&one, npy.type), (long long)cornu__npy_bytes(&npy),
                           size - header);
    CornuType  wanted = row->type;
    const bool padded = cornu__feature_is_padded(row);
    if (padded && npy.type.shape.rank > 0) wanted.shape.extent[0] = npy.type.shape.extent[0];
    if (!cornu_type_equal(npy.type, wanted))
        return cornu__fail(CORNU_ERR_FORMAT, "is %s, expected %s", cornu_type_print(&one, npy.type),
                           cornu_type_print(&other, row->type));
    int64_t fitting = cornu_type_count(npy.type);
    CORNU__TRY(cornu__feature_fits(row, fitting, &fitting));
    const int64_t length = wanted.shape.rank ? wanted.shape.extent[0] : 1;
    *used = padded && length > row->type.shape.extent[0] ? row->type.shape.extent[0] : length;
    return copy_array(&npy, bytes + header, fitting, to);
}

/* ---- JSON ---- */

/* Numbers, and lists of them in lists. */
static CornuStatus put_values(const json_t *value, Numbers *numbers)
{
    if (json_is_integer(value)) return put_integer(numbers, json_integer_value(value));
    if (json_is_real(value)) return put_real(numbers, json_real_value(value));
    if (json_is_boolean(value)) return put_integer(numbers, json_is_true(value));
    if (!json_is_array(value))
        return cornu__fail(CORNU_ERR_FORMAT, "value %lld is no number", (long long)numbers->count);
    for (size_t i = 0; i < json_array_size(value); i++)
        CORNU__TRY(put_values(json_array_get(value, i), numbers));
    return CORNU_OK;
}

/* The field of "json:a.b", or the whole value. */
static CornuStatus find_field(const json_t *value, const char *name, const json_t **found)
{
    const char *path = strchr(name, ':');
    for (path = path ? path + 1 : NULL; path && *path;) {
        char         key[256];
        const size_t length = strcspn(path, ".");
        if (length >= sizeof key)
            return cornu__fail(CORNU_ERR_ARGUMENT, "a field of more than %zu bytes",
                               sizeof key - 1);
        memcpy(key, path, length);
        key[length] = '\0';
        value = json_object_get(value, key);
        if (!value) return cornu__fail(CORNU_ERR_FORMAT, "has no field \"%.80s\"", key);
        path += length + (path[length] == '.');
    }
    *found = value;
    return CORNU_OK;
}

static CornuStatus decode_json(const unsigned char *bytes, size_t size, Numbers *numbers,
                               int64_t *used)
{
    const CornuFeatureRow *row = numbers->row;
    const json_t          *value = NULL;
    json_error_t           error;
    json_t *whole = json_loadb((const char *)bytes, size,
                               JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!whole) return cornu__fail(CORNU_ERR_FORMAT, "is not JSON: %s", error.text);
    CornuStatus status = find_field(whole, row->feature.name, &value);
    if (!status && row->feature.kind != CORNU_FEATURE_BYTES) {
        status = put_values(value, numbers);
        if (!status) status = end_numbers(numbers, used);
    } else if (!status && json_is_string(value)) {
        status = cornu__feature_bytes(row, (const unsigned char *)json_string_value(value),
                                      json_string_length(value), numbers->to, used);
    } else if (!status) {
        status = cornu__fail(CORNU_ERR_FORMAT, "is not a string, which .kind expects");
    }
    json_decref(whole);
    return status;
}

/* ---- All of them ---- */

CornuStatus cornu__tar_decode(const CornuFeatureRow *row, const unsigned char *bytes, size_t size,
                              void *const *to)
{
    const CornuTarSource source = cornu__tar_source(row);
    const bool           numeric = row->feature.kind <= CORNU_FEATURE_VAR;
    Numbers numbers = { .row = row, .to = to[row->component], .most = cornu_type_count(row->type) };
    int64_t     used = 0;
    CornuStatus status;
    if (source == CORNU__TAR_JSON && (numeric || row->feature.kind == CORNU_FEATURE_BYTES)) {
        status = decode_json(bytes, size, &numbers, &used);
    } else if (!numeric) {
        status = cornu__feature_bytes(row, bytes, size, numbers.to, &used);
    } else if (source == CORNU__TAR_NPY) {
        status = decode_npy(row, bytes, size, numbers.to, &used);
    } else {
        status = decode_text(bytes, size, &numbers);
        if (!status) status = end_numbers(&numbers, &used);
    }
    if (!status) cornu__feature_end(row, used, to);
    return status;
}
