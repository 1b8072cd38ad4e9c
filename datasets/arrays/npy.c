#include "npy_internal.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/files/file_internal.h"

const char cornu__npy_magic[] = "\x93NUMPY";

static const CornuNpyDtype dtypes[] = {
    { "f4", CORNU_F32, 4, true },  { "f8", CORNU_F64, 8, true },  { "f2", CORNU_F16, 2, true },
    { "i8", CORNU_I64, 8, true },  { "i4", CORNU_I32, 4, true },  { "u4", CORNU_U32, 4, false },
    { "u1", CORNU_U8, 1, false },  { "b1", CORNU_BOOL, 1, false },
    { "i1", CORNU_I32, 1, true },  { "i2", CORNU_I32, 2, true },  { "u2", CORNU_I32, 2, false },
    { "u8", CORNU_I64, 8, false },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

const CornuNpyDtype *cornu__npy_dtype(CornuDtype dtype)
{
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].to == dtype) return &dtypes[i];   /* the first one is its own */
    return NULL;
}

/* ---- The header ---- */

CornuStatus cornu__npy_header_size(const unsigned char *bytes, size_t size, size_t *header)
{
    const size_t magic = size < CORNU__NPY_MAGIC ? size : CORNU__NPY_MAGIC;
    if (!magic || memcmp(bytes, cornu__npy_magic, magic))
        return cornu__fail(CORNU_ERR_FORMAT, "is not a NumPy array");
    if (size < CORNU__NPY_START)
        return cornu__fail(CORNU_ERR_FORMAT, "ends after %zu bytes, in the header of an array",
                           size);
    if (bytes[6] < 1 || bytes[6] > 3)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "has version %d of the format, expected 1 to 3",
                           bytes[6]);
    const size_t wide = bytes[6] == 1 ? 2 : 4, start = 8 + wide;
    const size_t length = (size_t)cornu__little_endian(bytes + 8, (int)wide);
    if (length == 0 || length > CORNU__NPY_MOST)
        return cornu__fail(CORNU_ERR_FORMAT, "has a header of %zu bytes, expected 1 to %d", length,
                           CORNU__NPY_MOST);
    *header = start + length;
    return CORNU_OK;
}

/* What is left of the header's text. */
typedef struct { const char *at, *end; } Text;

static void skip_blanks(Text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n')) text->at++;
}

/* Moves over blanks, `word` and blanks; whether the word is there. */
static bool take(Text *text, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length)) return false;
    text->at += length;
    skip_blanks(text);
    return true;
}

static CornuStatus bad_header(void)
{
    return cornu__fail(CORNU_ERR_FORMAT, "has a header without descr, fortran_order and shape once "
                       "each");
}

/* A dtype by what follows in the header: a string in quotes, or a list of fields. */
static CornuStatus refuse_dtype(const char *from, const char *end)
{
    enum { SHOWN = 40 };
    const char  close = from < end && *from == '\'' ? '\'' : ']';
    const char *stop = from < end ? memchr(from + 1, close, (size_t)(end - from - 1)) : NULL;
    const ptrdiff_t length = (stop ? stop + 1 : end) - from;
    const bool  pickled = stop && memchr(from, 'O', (size_t)length);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "has dtype %.*s%s, expected one of f4 f8 f2 i8 i4 i2 "
                       "i1 u8 u4 u2 u1 b1 after < or >", (int)(length < SHOWN ? length : SHOWN),
                       from, pickled ? ", objects of Python, which are pickled" : "");
}

static CornuStatus read_dtype(Text *text, CornuNpy *array)
{
    static const uint16_t one = 1;
    const bool  big_host = *(const unsigned char *)&one == 0;
    const char *from = text->at;
    if (take(text, "'")) {
        const char  *name = text->at;
        const size_t left = (size_t)(text->end - name);
        for (int i = 0; i < DTYPES && left >= 4; i++) {
            if (memcmp(name + 1, dtypes[i].name, 2) || name[3] != '\'' || !strchr("<>|=", *name))
                continue;
            array->dtype = &dtypes[i];
            array->type.dtype = dtypes[i].to;
            array->swapped = dtypes[i].size > 1 && *name == (big_host ? '<' : '>');
            text->at += 3;
            return take(text, "'") ? CORNU_OK : bad_header();
        }
    }
    return refuse_dtype(from, text->end);
}

/* "(3, 3)", "(3,)", "()" */
static CornuStatus read_shape(Text *text, CornuShape *shape)
{
    *shape = (CornuShape){ 0 };
    bool more = take(text, "(");
    if (!more) return bad_header();
    while (!take(text, ")")) {
        int64_t extent = 0;
        int     digits = 0;
        if (!more) return bad_header();
        for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++, digits++) {
            if (digits == 18)
                return cornu__fail(CORNU_ERR_FORMAT, "has an extent of more than 18 digits");
            extent = 10 * extent + (*text->at - '0');
        }
        if (!digits)
            return cornu__fail(CORNU_ERR_FORMAT, "has an extent \"%.*s\", expected a number that "
                               "is not negative", text->end - text->at < 12
                               ? (int)(text->end - text->at) : 12, text->at);
        if (shape->rank == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "has more than %d axes", CORNU_MAX_RANK);
        shape->extent[shape->rank++] = extent;
        take(text, "L");      /* as Python 2 writes it */
        more = take(text, ",");
    }
    return CORNU_OK;
}

CornuStatus cornu__npy_parse(const unsigned char *bytes, size_t header, CornuNpy *array)
{
    const size_t start = bytes[6] == 1 ? 10 : 12;
    Text         text = { (const char *)bytes + start, (const char *)bytes + header };
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    int seen = 0, key;
    *array = (CornuNpy){ .column_major = false };
    if (!take(&text, "{")) return bad_header();
    while (!take(&text, "}")) {
        if (take(&text, "'descr'") && take(&text, ":")) {
            key = DESCR;
            CORNU__TRY(read_dtype(&text, array));
        } else if (take(&text, "'fortran_order'") && take(&text, ":")) {
            array->column_major = take(&text, "True");
            if (!array->column_major && !take(&text, "False")) return bad_header();
            key = ORDER;
        } else if (take(&text, "'shape'") && take(&text, ":")) {
            key = SHAPE;
            CORNU__TRY(read_shape(&text, &array->type.shape));
        } else {
            return bad_header();
        }
        if (seen & key) return bad_header();
        seen |= key;
        if (!take(&text, ",") && (text.at == text.end || *text.at != '}')) return bad_header();
    }
    if (seen != (DESCR | ORDER | SHAPE)) return bad_header();
    /* The elements in the file may be larger than those of the array, or smaller. */
    CornuType wide = array->type;
    wide.dtype = CORNU_F64;
    CORNU__TRY(cornu_type_check(array->type));
    return cornu_type_check(wide);
}

int64_t cornu__npy_bytes(const CornuNpy *array)
{
    return cornu_type_count(array->type) * (int64_t)array->dtype->size;
}

/* ---- Elements ---- */

bool cornu__npy_is_exact(const CornuNpy *array)
{
    return cornu__npy_dtype(array->type.dtype) == array->dtype && !array->swapped &&
           array->type.dtype != CORNU_BOOL && !array->column_major;
}

static uint64_t load(const unsigned char *from, size_t size, bool swapped)
{
    uint64_t      value = 0;
    unsigned char bytes[8];
    for (size_t k = 0; k < size; k++) bytes[k] = from[swapped ? size - 1 - k : k];
    switch (size) {
    case 1: value = bytes[0]; break;
    case 2: { uint16_t half; memcpy(&half, bytes, 2); value = half; break; }
    case 4: { uint32_t word; memcpy(&word, bytes, 4); value = word; break; }
    default: memcpy(&value, bytes, 8);
    }
    return value;
}

/* Loads each element, as the number that it is or as its bits, and stores it with another size. */
static void convert_each(const CornuNpy *array, const unsigned char *from, int64_t count, void *to)
{
    const size_t size = array->dtype->size, wide = cornu_dtype_size(array->type.dtype);
    const int    unused = (int)(64 - 8 * size);
    for (int64_t i = 0; i < count; i++, from += size) {
        uint64_t value = load(from, size, array->swapped);
        if (array->dtype->is_signed && wide > size)
            value = (uint64_t)((int64_t)(value << unused) >> unused);
        unsigned char *at = (unsigned char *)to + (size_t)i * wide;
        switch (wide) {
        case 1: *at = array->type.dtype == CORNU_BOOL ? value != 0 : (unsigned char)value; break;
        case 2: memcpy(at, &(uint16_t){ (uint16_t)value }, 2); break;
        case 4: memcpy(at, &(uint32_t){ (uint32_t)value }, 4); break;
        default: memcpy(at, &value, 8);
        }
    }
}

void cornu__npy_convert(const CornuNpy *array, const void *from, int64_t count, void *to)
{
    const bool same = cornu__npy_dtype(array->type.dtype) == array->dtype && !array->swapped;
    if (same && array->type.dtype != CORNU_BOOL)
        memcpy(to, from, (size_t)count * array->dtype->size);
    else
        convert_each(array, from, count, to);
}

void cornu__npy_transpose(CornuShape shape, size_t size, const void *from, int64_t stride,
                          void *to)
{
    const unsigned char *base = from;
    unsigned char       *out = to;
    int64_t              step[CORNU_MAX_RANK], index[CORNU_MAX_RANK] = { 0 }, at = 0;
    const int64_t        count = cornu_shape_count(shape);
    if (!count) return;   /* the products of other extents may overflow */
    for (int i = 0; i < shape.rank; i++) {
        step[i] = stride;
        stride *= shape.extent[i];
    }
    for (int64_t i = 0; i < count; i++, out += size) {
        memcpy(out, base + (size_t)at * size, size);
        for (int axis = shape.rank - 1; axis >= 0; axis--) {
            at += step[axis];
            if (++index[axis] < shape.extent[axis]) break;
            at -= step[axis] * shape.extent[axis];
            index[axis] = 0;
        }
    }
}
