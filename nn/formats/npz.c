#include "npz.h"

#include "../../datasets/arrays/npy_internal.h"
#include "../../device/files/zip_internal.h"
#include "../../device/memory.h"
#include "../../device/memory_internal.h"
#include "safetensors_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_HEADER = 10, ALIGNMENT = 64, MAX_TEXT = 256 };

/* ---- Writing ---- */

/* The bytes of the .npy member. */
static CornuStatus make_member(const CornuNamedArray *from, CornuZipMember *member)
{
    const CornuType type = from->array.type;
    char            text[MAX_TEXT], *name;

    const CornuNpyDtype *dtype = cornu__npy_dtype(type.dtype);
    if (!dtype)
        return cornu__fail(CORNU_ERR_DTYPE, "%s: NumPy has no %s", from->name,
                           cornu_dtype_name(type.dtype));
    int at = snprintf(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                      dtype->size == 1 ? "|" : "<", dtype->name);
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
    memcpy(to, cornu__npy_magic, CORNU__NPY_MAGIC);
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

/* The elements of an array, in a block of its own if those of the file are not in place. */
static CornuStatus read_elements(const CornuNpy *npy, unsigned char **bytes, size_t header,
                                 CornuArray *array)
{
    const size_t  size = npy->dtype->size;
    unsigned char *elements = *bytes + header, *rows = NULL;
    *array = cornu_array_from(elements, npy->type);
    if (cornu__npy_is_exact(npy)) return CORNU_OK;
    if (npy->column_major) {
        rows = cornu__allocate((size_t)cornu_type_count(npy->type), size);
        if (!rows) return CORNU_ERR_MEMORY;
        cornu__npy_transpose(npy->type.shape, size, elements, 1, rows);
    }
    array->data = cornu__allocate_aligned(cornu_type_bytes(npy->type));
    if (array->data)
        cornu__npy_convert(npy, rows ? rows : elements, cornu_type_count(npy->type), array->data);
    cornu__release(rows);
    if (!array->data) return CORNU_ERR_MEMORY;
    cornu__release(*bytes);
    *bytes = array->data;
    return CORNU_OK;
}

static CornuStatus read_array(unsigned char **bytes, size_t size, CornuArray *array)
{
    CornuNpy     npy;
    CornuText    text;
    size_t       header;
    const size_t first = size < CORNU__NPY_START ? size : CORNU__NPY_START;
    CORNU__TRY(cornu__npy_header_size(*bytes, first, &header));
    if (header > size)
        return cornu__fail(CORNU_ERR_FORMAT, "has a header of %zu bytes in a member of %zu", header,
                           size);
    CORNU__TRY(cornu__npy_parse(*bytes, header, &npy));
    if ((int64_t)(size - header) == cornu__npy_bytes(&npy))
        return read_elements(&npy, bytes, header, array);
    return cornu__fail(CORNU_ERR_FORMAT, "%s takes %lld bytes, the member has %zu",
                       cornu_type_print(&text, npy.type), (long long)cornu__npy_bytes(&npy),
                       size - header);
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
    CornuStatus status = read_array(&file->members[i], size, &file->arrays[i].array);
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
    return cornu__fail_prefix(read_array(&file->members[0], whole.size, &file->arrays[0].array),
                              path);
}

CornuNpz *cornu_npz_open(const char *path)
{
    CornuFileBytes first;
    size_t         size;
    CORNU__NEED_TO_LOAD(path);
    if (cornu__refused()) return NULL;
    CornuNpz   *file = cornu__allocate(1, sizeof *file);
    CornuStatus status = file ? cornu__fail_prefix(cornu__file_read_first(&first, path,
                                                                          CORNU__NPY_MAGIC,
                                                                          &size), path)
                              : CORNU_ERR_MEMORY;
    if (!status) {
        const bool single = first.size == CORNU__NPY_MAGIC &&
                            !memcmp(first.bytes, cornu__npy_magic, CORNU__NPY_MAGIC);
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
