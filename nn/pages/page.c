#include "page_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/files/file_internal.h"
#include "../../device/memory_internal.h"
#include "../formats/base64_internal.h"
#include "../formats/png_internal.h"

static const CornuPagePart *find_part(const char *name, size_t length)
{
    const CornuPagePart *part = cornu__page_parts;
    while (part->name && (strlen(part->name) != length || strncmp(part->name, name, length) != 0))
        part++;
    return part->name ? part : NULL;
}

/* JSON within a script element, whose text "</script" or "<!--" in a string would end or change:
 * "<" is written as "\u003c". */
static CornuStatus write_data(FILE *stream, const json_t *data)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (!text) return CORNU_ERR_MEMORY;
    for (const char *at = text; *at; at++)
        if (*at == '<') fputs("\\u003c", stream);
        else fputc(*at, stream);
    free(text);
    return CORNU_OK;
}

/* The template with its parts, in which nothing is replaced. */
static CornuStatus write_template(FILE *stream, const CornuPagePart *page, const json_t *data)
{
    const char *at = (const char *)page->bytes, *const end = at + page->size;
    while (at < end) {
        const char *open = at;
        while (open + 1 < end && (open[0] != '{' || open[1] != '{')) open++;
        if (open + 1 >= end) open = end;
        fwrite(at, 1, (size_t)(open - at), stream);
        if (open == end) break;
        const char *name = open + 2, *close = name;
        while (close < end && *close != '}') close++;
        const CornuPagePart *part = find_part(name, (size_t)(close - name));
        if (part) fwrite(part->bytes, 1, part->size, stream);
        else CORNU__TRY(write_data(stream, data));
        at = close + 2;
    }
    return CORNU_OK;
}

CornuStatus cornu__page_write(const char *path, const char *template, json_t *data)
{
    if (!data) return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for the page, or a name in it "
                                  "is not UTF-8", path);
    CornuNewFile file;
    CornuStatus  status = cornu__file_create(&file, path);
    if (!status) {
        status = write_template(file.stream, find_part(template, strlen(template)), data);
        if (status) cornu__file_abandon(&file);
        else status = cornu__file_commit(&file);
    }
    json_decref(data);
    return status;
}

/* ---- Values ---- */

typedef struct {
    unsigned char *bytes;
    int            size, space;
    CornuStatus    status;
} Bytes;

static void add_bytes(void *context, void *bytes, int size)
{
    Bytes *all = context;
    if (!all->status) all->status = cornu__reserve(&all->bytes, &all->space, all->size, size, 1);
    if (all->status) return;
    memcpy(all->bytes + all->size, bytes, (size_t)size);
    all->size += size;
}

json_t *cornu__page_picture(int64_t height, int64_t width, int64_t channels,
                            const uint8_t *pixels)
{
    Bytes png = { .size = 0 };
    if (!cornu__png_write((int)width, (int)height, (int)channels, pixels, add_bytes, &png) &&
        !png.status) {
        char   *text = cornu__base64(png.bytes, (size_t)png.size);
        json_t *url = text ? json_sprintf("data:image/png;base64,%s", text) : NULL;
        cornu__release(text);
        cornu__release(png.bytes);
        return url;
    }
    cornu__release(png.bytes);
    return NULL;
}

json_t *cornu__page_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}
