#include "safetensors_internal.h"

#include "../../device/memory_internal.h"
#include "../../device/hash/sha256_internal.h"
#include "../../device/files/file_internal.h"
#include "json_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 100000000, HEADER_DEPTH = 3 };   /* the format's own limit; {{[]}} */

static const char *const metadata_key = "__metadata__";

/* The digits of the checksum follow `sum_mark` in the header, which occurs nowhere else: within a
 * string its quotes would be escaped, and the value of an array is not a string. The checksum is
 * computed with zeros in their place. */
enum { SUM_DIGITS = CORNU__SHA256_TEXT - 1 };
static const char sum_key[] = "sha256", sum_mark[] = "\"sha256\":\"";
static const char sum_zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";

static const struct { const char *name; CornuDtype dtype; } dtypes[] = {
#define X(id, printed, size, file_name) { file_name, CORNU_##id },
    CORNU_DTYPE_MAP(X)
#undef X
};

/* ---- Reading ---- */

typedef struct {
    CornuNamedArray named;
    int64_t         begin, end;     /* in the data */
} Entry;

struct CornuSafetensors {
    CornuFileBytes file, head;      /* the header with its length is read before the rest */
    size_t         size;            /* of the file */
    json_t        *header;          /* owns the names */
    int64_t        data_size;
    Entry         *entries;
    int            count;
};

/* Reads the first bytes, at most `most`. Without a path the bytes of the file are there already. */
static CornuStatus read_first(CornuSafetensors *file, const char *path, size_t most)
{
    if (path) return cornu__file_read_first(&file->head, path, most, &file->size);
    file->size = file->file.size;
    file->head.size = most < file->size ? most : file->size;
    file->head.bytes = cornu__allocate(file->head.size, 1);
    if (!file->head.bytes) return CORNU_ERR_MEMORY;
    if (file->head.size) memcpy(file->head.bytes, file->file.bytes, file->head.size);
    return CORNU_OK;
}

/* Reads the length and then the header alone: a file of another kind may be very large. */
static CornuStatus read_header(CornuSafetensors *file, const char *path)
{
    CORNU__TRY(read_first(file, path, 10));
    if (file->size < 10)
        return cornu__fail(CORNU_ERR_FORMAT, "has %zu bytes, a safetensors file has at least 10",
                           file->size);
    const uint64_t length = cornu__little_endian(file->head.bytes, 8);
    if (length > file->size - 8)
        return cornu__fail(CORNU_ERR_FORMAT, "its header declares %llu bytes, %zu follow",
                           (unsigned long long)length, file->size - 8);
    if (length > MAX_HEADER)
        return cornu__fail(CORNU_ERR_FORMAT, "its header has %llu bytes, expected at most %d",
                           (unsigned long long)length, MAX_HEADER);
    if (file->head.bytes[8] != '{')
        return cornu__fail(CORNU_ERR_FORMAT, "its header begins with byte 0x%02x, expected '{'",
                           file->head.bytes[8]);
    cornu__file_release(&file->head);
    CORNU__TRY(read_first(file, path, 8 + (size_t)length));
    if (file->head.size != 8 + length)
        return cornu__fail(CORNU_ERR_FILE, "has %zu bytes now: it was changed while being read",
                           file->size);
    file->data_size = (int64_t)(file->size - 8 - length);
    file->header = cornu__json_parse((const char *)file->head.bytes + 8, (size_t)length,
                                     HEADER_DEPTH);
    return file->header ? CORNU_OK : cornu__fail_prefix(cornu_error_status(), "its header");
}

static CornuStatus check_metadata(const json_t *metadata)
{
    const char *key;
    json_t     *text;
    if (!json_is_object(metadata))
        return cornu__fail(CORNU_ERR_FORMAT, "%s is not an object", metadata_key);
    json_object_foreach((json_t *)metadata, key, text)
        if (!json_is_string(text))
            return cornu__fail(CORNU_ERR_FORMAT, "%s: \"%.100s\" is not a string", metadata_key,
                               key);
    return CORNU_OK;
}

static CornuStatus parse_dtype(const json_t *value, CornuDtype *dtype)
{
    const char *name = json_string_value(value);
    if (!name) return cornu__fail(CORNU_ERR_FORMAT, "its \"dtype\" is missing or not a string");
    for (int i = 0; i < CORNU_DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name)) continue;
        *dtype = dtypes[i].dtype;
        return CORNU_OK;
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "has dtype %.20s, expected one of F64 F32 BF16 F16 "
                       "I64 I32 U32 U8 BOOL", name);
}

static CornuStatus parse_shape(const json_t *value, CornuShape *shape)
{
    if (!json_is_array(value))
        return cornu__fail(CORNU_ERR_FORMAT, "its \"shape\" is missing or not a list");
    const size_t rank = json_array_size(value);
    if (rank > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "has %zu axes, expected at most %d", rank,
                           CORNU_MAX_RANK);
    *shape = (CornuShape){ .rank = (int)rank };
    for (size_t i = 0; i < rank; i++) {
        const json_t *extent = json_array_get(value, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return cornu__fail(CORNU_ERR_FORMAT, "axis %zu of its shape is not a non-negative "
                               "integer", i);
        shape->extent[i] = json_integer_value(extent);
    }
    return CORNU_OK;
}

static CornuStatus parse_offsets(const json_t *value, Entry *entry, int64_t data_size)
{
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return cornu__fail(CORNU_ERR_FORMAT, "its \"data_offsets\" are missing or not two "
                           "integers");
    entry->begin = json_integer_value(begin);
    entry->end = json_integer_value(end);
    if (entry->begin < 0 || entry->begin > entry->end || entry->end > data_size)
        return cornu__fail(CORNU_ERR_FORMAT, "lies at bytes %lld to %lld, expected a range within "
                           "0 to %lld", (long long)entry->begin, (long long)entry->end,
                           (long long)data_size);
    return CORNU_OK;
}

static CornuStatus parse_entry(const json_t *value, Entry *entry, int64_t data_size)
{
    CornuType type = { 0 };
    CornuText text;
    if (!json_is_object(value)) return cornu__fail(CORNU_ERR_FORMAT, "is not an object");
    CORNU__TRY(parse_dtype(json_object_get(value, "dtype"), &type.dtype));
    CORNU__TRY(parse_shape(json_object_get(value, "shape"), &type.shape));
    CORNU__TRY(parse_offsets(json_object_get(value, "data_offsets"), entry, data_size));
    if (json_object_size(value) != 3)
        return cornu__fail(CORNU_ERR_FORMAT, "has keys other than dtype, shape and data_offsets");
    CORNU__TRY(cornu_type_check(type));
    if ((int64_t)cornu_type_bytes(type) != entry->end - entry->begin)
        return cornu__fail(CORNU_ERR_FORMAT, "%s takes %zu bytes, its offsets span %lld",
                           cornu_type_print(&text, type), cornu_type_bytes(type),
                           (long long)(entry->end - entry->begin));
    entry->named.array.type = type;
    return CORNU_OK;
}

static int by_place(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Entry *)a)->named.name, ((const Entry *)b)->named.name);
}

/* The arrays cover the data from the first byte to the last, one after the other. */
static CornuStatus check_cover(const CornuSafetensors *file)
{
    int64_t at = 0;
    for (int i = 0; i < file->count; i++) {
        const Entry *entry = &file->entries[i];
        if (entry->begin != at)
            return cornu__fail(CORNU_ERR_FORMAT, "array \"%.100s\" begins at byte %lld, expected "
                               "%lld: %s", entry->named.name, (long long)entry->begin,
                               (long long)at, entry->begin < at ? "arrays overlap"
                                                                : "there is a gap");
        at = entry->end;
    }
    if (at != file->data_size)
        return cornu__fail(CORNU_ERR_FORMAT, "its arrays end at byte %lld, its data at %lld",
                           (long long)at, (long long)file->data_size);
    return CORNU_OK;
}

static CornuStatus parse_entries(CornuSafetensors *file)
{
    const char *name;
    json_t     *value;
    file->entries = cornu__allocate(json_object_size(file->header), sizeof *file->entries);
    if (!file->entries) return CORNU_ERR_MEMORY;
    json_object_foreach(file->header, name, value) {
        if (strcmp(name, metadata_key) == 0) {
            CORNU__TRY(check_metadata(value));
            continue;
        }
        Entry *entry = &file->entries[file->count++];
        entry->named.name = name;
        CornuStatus status = parse_entry(value, entry, file->data_size);
        if (status != CORNU_OK) {
            char place[120];
            snprintf(place, sizeof place, "array \"%.100s\"", name);
            return cornu__fail_prefix(status, place);
        }
    }
    qsort(file->entries, (size_t)file->count, sizeof *file->entries, by_place);
    CORNU__TRY(check_cover(file));
    qsort(file->entries, (size_t)file->count, sizeof *file->entries, by_name);
    return CORNU_OK;
}

/* Reads the whole file, which must still begin with the header that was read. */
static CornuStatus read_data(CornuSafetensors *file, const char *path)
{
    if (path) CORNU__TRY(cornu__file_read(&file->file, path));
    if (file->file.size != file->size ||
        memcmp(file->file.bytes, file->head.bytes, file->head.size) != 0)
        return cornu__fail(CORNU_ERR_FILE, "has %zu bytes now: it was changed while being read",
                           file->file.size);
    for (int i = 0; i < file->count; i++)
        file->entries[i].named.array.data =
            file->file.bytes + file->head.size + file->entries[i].begin;
    cornu__file_release(&file->head);
    return CORNU_OK;
}

/* Where the digits begin; NULL if there are none. */
static const char *find_sum(const char *header, size_t size)
{
    const size_t mark = sizeof sum_mark - 1;
    for (size_t at = 0; at + mark + SUM_DIGITS <= size; at++)
        if (memcmp(header + at, sum_mark, mark) == 0) return header + at + mark;
    return NULL;
}

static CornuStatus check_sum(const CornuSafetensors *file)
{
    if (!cornu_safetensors_has_checksum(file)) return CORNU_OK;
    const unsigned char *end = file->file.bytes + file->file.size;
    const unsigned char *digits = (const unsigned char *)find_sum(
        (const char *)file->file.bytes + 8, file->file.size - 8 - (size_t)file->data_size);
    char        text[CORNU__SHA256_TEXT] = "";
    CornuSha256 sum;
    if (digits) {
        cornu__sha256_begin(&sum);
        cornu__sha256_add(&sum, file->file.bytes, (size_t)(digits - file->file.bytes));
        cornu__sha256_add(&sum, sum_zeros, SUM_DIGITS);
        digits += SUM_DIGITS;
        cornu__sha256_add(&sum, digits, (size_t)(end - digits));
        cornu__sha256_end(&sum, text);
    }
    if (digits && !strcmp(text, cornu_safetensors_metadata(file, sum_key))) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "the checksum does not match: the file is damaged, or was "
                       "changed by a program that kept the old \"%s\" in its metadata", sum_key);
}

/* Takes `bytes`, those of the file if it has no path. */
static CornuSafetensors *open_file(const char *path, CornuFileBytes bytes)
{
    CornuSafetensors *file = cornu__allocate(1, sizeof *file);
    if (!file) cornu__file_release(&bytes);
    if (!file) return cornu__loaded(NULL);
    file->file = bytes;
    CornuStatus status = read_header(file, path);
    if (status == CORNU_OK) status = parse_entries(file);
    if (status == CORNU_OK) status = read_data(file, path);
    if (status == CORNU_OK) status = check_sum(file);
    if (status == CORNU_OK) return cornu__loaded(file);
    if (path) cornu__fail_prefix(status, path);
    cornu_safetensors_close(file);
    return cornu__loaded(NULL);
}

CornuSafetensors *cornu_safetensors_open(const char *path)
{
    CORNU__NEED_TO_LOAD(path);
    return cornu__refused() ? NULL : open_file(path, (CornuFileBytes){ .size = 0 });
}

CornuSafetensors *cornu__safetensors_of(CornuFileBytes *bytes)
{
    const CornuFileBytes taken = *bytes;
    *bytes = (CornuFileBytes){ .size = 0 };
    return open_file(NULL, taken);
}

CornuFileBytes cornu__safetensors_bytes(const CornuSafetensors *file) { return file->file; }

void cornu_safetensors_close(CornuSafetensors *file)
{
    if (!file) return;
    cornu__file_release(&file->head);
    cornu__file_release(&file->file);
    json_decref(file->header);
    cornu__release(file->entries);
    cornu__release(file);
}

int cornu_safetensors_count(const CornuSafetensors *file)
{
    CORNU__NEED_OR(file, 0);
    return file->count;
}

const CornuNamedArray *cornu_safetensors_at(const CornuSafetensors *file, int i)
{
    CORNU__NEED_OR(file, NULL);
    return i >= 0 && i < file->count ? &file->entries[i].named : NULL;
}

const CornuNamedArray *cornu_safetensors_find(const CornuSafetensors *file, const char *name)
{
    CORNU__NEED_OR(file, NULL);
    const Entry key = { .named.name = name };
    const Entry *entry = bsearch(&key, file->entries, (size_t)file->count, sizeof key, by_name);
    return entry ? &entry->named : NULL;
}

const char *cornu_safetensors_metadata(const CornuSafetensors *file, const char *key)
{
    CORNU__NEED_OR(file, NULL);
    return json_string_value(json_object_get(json_object_get(file->header, metadata_key), key));
}

bool cornu_safetensors_has_checksum(const CornuSafetensors *file)
{
    return cornu_safetensors_metadata(file, sum_key) != NULL;
}

/* ---- Writing ---- */

CornuStatus cornu__check_named(const char *function, const CornuNamedArray *arrays, int count)
{
    if (count < 0 || (count > 0 && !arrays))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: count is %d, arrays %s", function, count,
                           arrays ? "are given" : "is NULL");
    for (int i = 0; i < count; i++) {
        const CornuArray array = arrays[i].array;
        if (!arrays[i].name)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the name of array %d is NULL", function, i);
        CORNU__TRY(cornu__fail_prefix(cornu_type_check(array.type), arrays[i].name));
        if (!array.data && cornu_type_count(array.type) > 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the data of \"%s\" is NULL", function,
                               arrays[i].name);
    }
    return CORNU_OK;
}

/* Wide elements first, so that every array is aligned to its elements; then by name. */
static int by_size_and_name(const void *a, const void *b)
{
    const CornuNamedArray *x = a, *y = b;
    const size_t x_size = cornu_dtype_size(x->array.type.dtype);
    const size_t y_size = cornu_dtype_size(y->array.type.dtype);
    if (x_size != y_size) return x_size > y_size ? -1 : 1;
    return strcmp(x->name, y->name);
}

static json_t *describe(const CornuNamedArray *array, int64_t begin)
{
    const CornuType type = array->array.type;
    json_t *shape = json_array();
    for (int i = 0; i < type.shape.rank; i++) {
        if (json_array_append_new(shape, json_integer(type.shape.extent[i])) == 0) continue;
        json_decref(shape);
        return NULL;
    }
    const char *dtype = "";
    for (int i = 0; i < CORNU_DTYPE_COUNT; i++)
        if (dtypes[i].dtype == type.dtype) dtype = dtypes[i].name;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + (int64_t)cornu_type_bytes(type)));
}

/* Adds a new key, or says why it cannot. Takes `value`, which is NULL if there was no memory for
 * it. */
static CornuStatus add(json_t *object, const char *key, json_t *value)
{
    if (!cornu__is_utf8(key)) {
        json_decref(value);
        return cornu__fail(CORNU_ERR_ARGUMENT, "the name \"%s\" is not UTF-8", key);
    }
    if (json_object_get(object, key)) {
        json_decref(value);
        return cornu__fail(CORNU_ERR_ARGUMENT, "the name \"%s\" is given twice", key);
    }
    if (json_object_set_new(object, key, value) == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "no memory to describe \"%s\"", key);
}

static CornuStatus add_text(json_t *object, CornuMetadata metadata)
{
    if (cornu__is_utf8(metadata.text)) return add(object, metadata.key, json_string(metadata.text));
    return cornu__fail(CORNU_ERR_ARGUMENT, "the metadata \"%s\" is not UTF-8", metadata.key);
}

static CornuStatus make_header(json_t *header, const CornuNamedArray *arrays, int count,
                               const CornuMetadata *metadata, int metadata_count)
{
    json_t *texts = json_object();
    CORNU__TRY(add(header, metadata_key, texts));
    for (int i = 0; i < metadata_count; i++)
        CORNU__TRY(add_text(texts, metadata[i]));
    CORNU__TRY(add_text(texts, (CornuMetadata){ sum_key, sum_zeros }));
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        CORNU__TRY(cornu_type_check(arrays[i].array.type));
        CORNU__TRY(add(header, arrays[i].name, describe(&arrays[i], at)));
        at += (int64_t)cornu_type_bytes(arrays[i].array.type);
    }
    return CORNU_OK;
}

/* The length and the header, padded with blanks to a multiple of 8: *size bytes, to be released. */
static char *make_head(const char *header, size_t *size)
{
    const size_t used = strlen(header), length = (used + 7) / 8 * 8;
    char        *head = cornu__allocate(8 + length, 1);
    if (!head) return NULL;
    for (int i = 0; i < 8; i++) head[i] = (char)((uint64_t)length >> (8 * i) & 0xFF);
    memcpy(head + 8, header, used);
    memset(head + 8 + used, ' ', length - used);
    *size = 8 + length;
    return head;
}

/* Puts the checksum of the whole file into its head. */
static void add_sum(char *head, size_t size, const CornuNamedArray *arrays, int count)
{
    CornuSha256 sum;
    char        text[CORNU__SHA256_TEXT];
    cornu__sha256_begin(&sum);
    cornu__sha256_add(&sum, head, size);
    for (int i = 0; i < count; i++)
        cornu__sha256_add(&sum, arrays[i].array.data, cornu_type_bytes(arrays[i].array.type));
    cornu__sha256_end(&sum, text);
    memcpy(head + (find_sum(head, size) - head), text, SUM_DIGITS);
}

static CornuStatus write_all(const char *path, const char *header, const CornuNamedArray *arrays,
                             int count)
{
    CornuNewFile file;
    size_t       size;
    char        *head = make_head(header, &size);
    CornuStatus  status = head ? cornu__file_create(&file, path) : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) {
        add_sum(head, size, arrays, count);
        fwrite(head, 1, size, file.stream);
        for (int i = 0; i < count; i++)
            fwrite(arrays[i].array.data, 1, cornu_type_bytes(arrays[i].array.type), file.stream);
        status = cornu__file_commit(&file);
    }
    cornu__release(head);
    return status;
}

CornuStatus cornu_safetensors_write(const char *path, const CornuNamedArray *arrays, int count,
                                    const CornuMetadata *metadata, int metadata_count)
{
    CORNU__NEED(path);
    CORNU__TRY(cornu__check_named("cornu_safetensors_write", arrays, count));
    CornuNamedArray *sorted = cornu__allocate((size_t)count, sizeof *sorted);
    if (!sorted) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        sorted[i] = arrays[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_size_and_name);

    json_t *header = json_object();
    char *text = NULL;
    CornuStatus status = make_header(header, sorted, count, metadata, metadata_count);
    if (status != CORNU_OK) {
        cornu__fail_prefix(status, path);
    } else {
        text = cornu__json_text(header);
        status = text ? write_all(path, text, sorted, count) : CORNU_ERR_MEMORY;
    }
    free(text);
    json_decref(header);
    cornu__release(sorted);
    return status;
}
