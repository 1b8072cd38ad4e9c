#include "npz.h"

#include "../../device/memory.h"
#include "../../device/memory_internal.h"
#include "../../device/files/file_internal.h"
#include "safetensors_internal.h"
#include "../../device/files/zip_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, FIRST_HEADER = 10, ALIGNMENT = 64, MAX_TEXT = 256 };

static const struct { CornuDtype dtype; const char *name; } dtypes[] = {
    { CORNU_F32, "<f4" }, { CORNU_F64, "<f8" }, { CORNU_F16, "<f2" }, { CORNU_I64, "<i8" },
    { CORNU_I32, "<i4" }, { CORNU_U32, "<u4" }, { CORNU_U8, "|u1" },  { CORNU_BOOL, "|b1" },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- Writing ---- */

/* The bytes of the .npy member. */
static CornuStatus make_member(const CornuNamedArray *from, CornuZipMember *member)
{
    const CornuType type = from->array.type;
    const char     *dtype = NULL;
    char            text[MAX_TEXT], *name;
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].dtype == type.dtype) dtype = dtypes[i].name;
    if (!dtype)
        return cornu__fail(CORNU_ERR_DTYPE, "%s: NumPy has no %s", from->name,
                           cornu_dtype_name(type.dtype));
    int at = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      dtype);
    for (int i = 0; i < type.shape.rank; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld%s", i ? " " : "",
                       (long long)type.shape.extent[i],
                       type.shape.rank == 1 || i + 1 < type.shape.rank ? "," : "");
    snprintf(text + at, sizeof text - (size_t)at, "), }");
    const size_t all = (FIRST_HEADER + strlen(text) + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const size_t bytes = cornu_type_bytes(type), length = all - FIRST_HEADER;
    const size_t name_size = strlen(from->name) + sizeof ".npy";
    member->name = name = cornu__allocate(name_size, 1);
    char *to = name ? cornu__allocate(all + bytes, 1) : NULL;
    member->bytes = to;
    if (!to) return CORNU_ERR_MEMORY;
    snprintf(name, name_size, "%s.npy", from->name);
    memcpy(to, magic, MAGIC);
    to[6] = 1;
    to[8] = (char)(length & 0xFF);
    to[9] = (char)(length >> 8);
    snprintf(to + FIRST_HEADER, length, "%-*s", (int)length - 1, text);
    to[all - 1] = '\n';
    memcpy(to + all, from->array.data, bytes);
    member->size = all + bytes;
    return CORNU_OK;
}

static CornuStatus check_names(const CornuNamedArray *arrays, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(arrays[i].name, arrays[k].name))
                return cornu__fail(CORNU_ERR_ARGUMENT, "the name \"%s\" is given twice",
                                   arrays[i].name);
    return CORNU_OK;
}

CornuStatus cornu_npz_write(const char *path, const CornuNamedArray *arrays, int count)
{
    CORNU__NEED(path);
    CORNU__TRY(cornu__check_named("cornu_npz_write", arrays, count));
    CornuZipMember *members = cornu__allocate((size_t)count, sizeof *members);
    if (!members) return CORNU_ERR_MEMORY;
    CornuStatus status = check_names(arrays, count);
    for (int i = 0; i < count && status == CORNU_OK; i++)
        status = make_member(&arrays[i], &members[i]);
    if (status == CORNU_OK) status = cornu__zip_write(path, members, count);
    else cornu__fail_prefix(status, path);
    for (int i = 0; i < count; i++) {
        cornu__release((void *)members[i].name);
        cornu__release((void *)members[i].bytes);
    }
    cornu__release(members);
    return status;
}

/* ---- Reading ---- */

struct CornuNpz {
    CornuNamedArray *arrays;
    char           **names;
    unsigned char  **members;        /* which hold the arrays */
    int              count;
};

/* Skips blanks, `word` and blanks; NULL if the word is not there. */
static const char *skip(const char *at, const char *word)
{
    if (!at) return NULL;
    at += strspn(at, " \n");
    const size_t length = strlen(word);
    if (strncmp(at, word, length)) return NULL;
    at += length;
    return at + strspn(at, " \n");
}

static const char *read_dtype(const char *at, CornuDtype *dtype, CornuStatus *status)
{
    const char  *text = skip(at, "'");
    const size_t length = text ? strcspn(text, "'") : 0;
    for (int i = 0; i < DTYPES && text; i++) {
        if (strlen(dtypes[i].name) != length || strncmp(text, dtypes[i].name, length)) continue;
        *dtype = dtypes[i].dtype;
        return skip(text + length, "'");
    }
    *status = cornu__fail(CORNU_ERR_UNSUPPORTED, "has dtype %.20s, expected one of '<f4' '<f8' "
                          "'<f2' '<i8' '<i4' '<u4' '|u1' '|b1'", at);
    return NULL;
}

/* "(3, 3)", "(3,)", "()" */
static const char *read_shape(const char *at, CornuShape *shape, CornuStatus *status)
{
    *shape = (CornuShape){ 0 };
    at = skip(at, "(");
    while (at && *at != ')') {
        char           *end;
        const long long extent = strtoll(at, &end, 10);
        if (end == at || extent < 0) return NULL;
        if (shape->rank == CORNU_MAX_RANK) {
            *status = cornu__fail(CORNU_ERR_UNSUPPORTED, "has more than %d axes", CORNU_MAX_RANK);
            return NULL;
        }
        shape->extent[shape->rank++] = extent;
        at = *end == ')' ? end : skip(end, ",");
    }
    return skip(at, ")");
}

/* Parses the dictionary of an array, keys in any order. */
static CornuStatus read_text(const char *at, CornuType *type)
{
    CornuStatus status = CORNU_OK;
    int         seen = 0;
    at = skip(at, "{");
    while (at && *at != '}') {
        const char *descr = skip(skip(at, "'descr'"), ":");
        const char *order = skip(skip(at, "'fortran_order'"), ":");
        const char *shape = skip(skip(at, "'shape'"), ":");
        if (descr) at = read_dtype(descr, &type->dtype, &status);
        else if (order && skip(order, "True"))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "is column-major (fortran_order), expected "
                               "row-major");
        else if (order) at = skip(order, "False");
        else at = shape ? read_shape(shape, &type->shape, &status) : NULL;
        if (at && skip(at, ",")) at = skip(at, ",");
        seen += descr ? 1 : order ? 10 : 100;
    }
    if (status != CORNU_OK) return status;
    if (!at || seen != 111)
        return cornu__fail(CORNU_ERR_FORMAT, "has a header without descr, fortran_order and shape "
                           "once each");
    return cornu_type_check(*type);
}

static CornuStatus read_array(unsigned char *bytes, size_t size, CornuArray *array)
{
    const bool   known = size >= FIRST_HEADER && !memcmp(bytes, magic, MAGIC) &&
                         bytes[6] >= 1 && bytes[6] <= 3;
    if (!known) return cornu__fail(CORNU_ERR_FORMAT, "is not a NumPy array");
    const size_t wide = bytes[6] == 1 ? 2 : 4, start = 8 + wide;
    const size_t length = start > size ? 0 : cornu__little_endian(bytes + 8, (int)wide);
    if (start > size || length > size - start || length == 0)
        return cornu__fail(CORNU_ERR_FORMAT, "has a header of %zu bytes in a member of %zu", length,
                           size);
    bytes[start + length - 1] = '\0';              /* a newline before */
    CORNU__TRY(read_text((const char *)bytes + start, &array->type));
    const size_t rest = size - start - length, needed = cornu_type_bytes(array->type);
    CornuText    text;
    if (rest != needed)
        return cornu__fail(CORNU_ERR_FORMAT, "%s takes %zu bytes, the member has %zu",
                           cornu_type_print(&text, array->type), needed, rest);
    array->data = bytes + start + length;
    return CORNU_OK;
}

/* The name of an array is that of its member without ".npy". */
static CornuStatus read_member(const CornuZip *zip, int i, CornuNpz *file)
{
    size_t       size;
    const char  *name = cornu__zip_name(zip, i);
    const size_t length = strlen(name);
    if (length < 4 || strcmp(name + length - 4, ".npy"))
        return cornu__fail(CORNU_ERR_FORMAT, "member \"%.80s\" is not a .npy file", name);
    if (!(file->names[i] = cornu__copy_text(name))) return CORNU_ERR_MEMORY;
    file->names[i][length - 4] = '\0';
    file->arrays[i].name = file->names[i];
    CORNU__TRY(cornu__zip_read(zip, i, &file->members[i], &size));
    CornuStatus status = read_array(file->members[i], size, &file->arrays[i].array);
    char        what[120];
    snprintf(what, sizeof what, "array \"%.80s\"", file->names[i]);
    return cornu__fail_prefix(status, what);
}

/* All arrays are read, so that together they are bounded as one allocation is: a member that is
 * deflated may have 1032 bytes for each in the file. */
static CornuStatus check_sizes(const CornuZip *zip, int count)
{
    const size_t most = cornu_memory_limit();
    size_t       total = 0;
    for (int i = 0; i < count; i++) {
        const size_t size = cornu__zip_size(zip, i);
        total = size > SIZE_MAX - total ? SIZE_MAX : total + size;
    }
    if (total <= most) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "its arrays have %zu bytes, the limit is %zu; "
                       "CORNU_MAX_MEMORY raises it", total, most);
}

static CornuStatus reserve(CornuNpz *file, int count)
{
    file->count = count;
    file->arrays = cornu__allocate((size_t)count, sizeof *file->arrays);
    file->names = cornu__allocate((size_t)count, sizeof *file->names);
    file->members = cornu__allocate((size_t)count, sizeof *file->members);
    return file->arrays && file->names && file->members ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus read_archive(const char *path, CornuNpz *file)
{
    CornuZip *zip = cornu__zip_open(path);
    if (!zip) return cornu_error_take();
    CornuStatus status = reserve(file, cornu__zip_count(zip));
    if (!status) status = check_sizes(zip, file->count);
    for (int i = 0; i < file->count && !status; i++) status = read_member(zip, i, file);
    cornu__zip_close(zip);
    return cornu__fail_prefix(status, path);
}

/* A .npy file, whose array gets the name that numpy.savez gives the first one. */
static CornuStatus read_single(const char *path, CornuNpz *file)
{
    CornuFileBytes whole;
    CORNU__TRY(reserve(file, 1));
    CORNU__TRY(cornu__fail_prefix(cornu__file_read(&whole, path), path));
    file->members[0] = whole.bytes;
    file->names[0] = cornu__copy_text("arr_0");
    if (!file->names[0]) return CORNU_ERR_MEMORY;
    file->arrays[0].name = file->names[0];
    return cornu__fail_prefix(read_array(whole.bytes, whole.size, &file->arrays[0].array), path);
}

CornuNpz *cornu_npz_open(const char *path)
{
    CornuFileBytes first;
    size_t         size;
    CORNU__NEED_TO_LOAD(path);
    if (cornu__refused()) return NULL;
    CornuNpz   *file = cornu__allocate(1, sizeof *file);
    CornuStatus status = file ? cornu__fail_prefix(cornu__file_read_first(&first, path, MAGIC,
                                                                          &size), path)
                              : CORNU_ERR_MEMORY;
    if (!status) {
        const bool single = first.size == MAGIC && !memcmp(first.bytes, magic, MAGIC);
        cornu__file_release(&first);
        status = (single ? read_single : read_archive)(path, file);
    }
    if (status == CORNU_OK) return cornu__loaded(file);
    cornu_npz_close(file);
    return cornu__loaded(NULL);
}

void cornu_npz_close(CornuNpz *file)
{
    if (!file) return;
    for (int i = 0; i < file->count && file->names && file->members; i++) {
        cornu__release(file->names[i]);
        cornu__release(file->members[i]);
    }
    cornu__release(file->arrays);
    cornu__release(file->names);
    cornu__release(file->members);
    cornu__release(file);
}

int cornu_npz_count(const CornuNpz *file)
{
    CORNU__NEED_OR(file, 0);
    return file->count;
}

const CornuNamedArray *cornu_npz_at(const CornuNpz *file, int i)
{
    CORNU__NEED_OR(file, NULL);
    return i >= 0 && i < file->count ? &file->arrays[i] : NULL;
}

const CornuNamedArray *cornu_npz_find(const CornuNpz *file, const char *name)
{
    CORNU__NEED_OR(file, NULL);
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->arrays[i].name, name)) return &file->arrays[i];
    return NULL;
}
