#include "page_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/files/file_internal.h"
#include "../../device/memory_internal.h"
#include "../formats/base64_internal.h"
#include "../formats/png_internal.h"

/* The part of a name of so many bytes; NULL if there is none. */
static const CornuPagePart *find_part(const char *name, size_t length)
{
    const CornuPagePart *part = cornu__page_parts;
    while (part->name && (strlen(part->name) != length || strncmp(part->name, name, length) != 0))
        part++;
    return part->name ? part : NULL;
}

static void write_part(FILE *stream, const char *name, size_t length)
{
    const CornuPagePart *part = find_part(name, length);
    fwrite(part->bytes, 1, part->size, stream);
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

/* page.html has no other braces. */
static CornuStatus write_page(FILE *stream, const char *const *scripts, const json_t *data)
{
    static const char    at_scripts[] = "scripts", at_data[] = "data";
    const CornuPagePart *page = find_part("page.html", strlen("page.html"));
    const char          *at = (const char *)page->bytes, *const end = at + page->size;
    for (const char *open; (open = memchr(at, '{', (size_t)(end - at)));) {
        const char  *name = open + 2, *close = memchr(name, '}', (size_t)(end - name));
        const size_t length = (size_t)(close - name);
        fwrite(at, 1, (size_t)(open - at), stream);
        if (length == sizeof at_data - 1 && !memcmp(name, at_data, length))
            CORNU__TRY(write_data(stream, data));
        else if (length == sizeof at_scripts - 1 && !memcmp(name, at_scripts, length))
            for (int i = 0; scripts[i]; i++) write_part(stream, scripts[i], strlen(scripts[i]));
        else
            write_part(stream, name, length);
        at = close + 2;
    }
    fwrite(at, 1, (size_t)(end - at), stream);
    return CORNU_OK;
}

CornuStatus cornu__page_write(const char *path, const char *const *scripts, json_t *data)
{
    if (!data) return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for the page, or a name in it "
                                  "is not UTF-8", path);
    CornuNewFile file;
    CornuStatus  status = cornu__file_create(&file, path);
    if (!status) {
        status = write_page(file.stream, scripts, data);
        if (status) cornu__file_abandon(&file);
        else status = cornu__file_commit(&file);
    }
    json_decref(data);
    return status;
}

char *cornu__page_text(const char *const *scripts, const json_t *data, size_t *size)
{
    char       *text = NULL;
    FILE       *stream = open_memstream(&text, size);
    CornuStatus status = stream ? write_page(stream, scripts, data) : CORNU_ERR_MEMORY;
    if (stream && fclose(stream) != 0) status = CORNU_ERR_MEMORY;
    if (!status) return text;
    free(text);
    return NULL;
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
