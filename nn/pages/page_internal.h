/*
 * Pages for browsers: one file that needs no network.
 *
 * All pages are page.html, in which {{NAME}} stands for the part of that name, another file of this
 * folder, {{scripts}} for the scripts of a page's own, and {{data}} for its data as JSON. The parts
 * are in the library (pages.mk). What a page shows its scripts make of the data.
 */
#ifndef CORNU_NN_PAGE_INTERNAL_H
#define CORNU_NN_PAGE_INTERNAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "../../device/status_internal.h"

typedef struct {
    const char          *name;
    const unsigned char *bytes;
    size_t               size;
} CornuPagePart;

extern const CornuPagePart cornu__page_parts[];   /* up to one without a name */

/* Writes the page of these scripts, NULL-terminated names of parts, and data, whole or not at all.
 * Takes `data`; NULL, as after a json_pack that failed, is CORNU_ERR_MEMORY. CORNU_ERR_FILE if the
 * file cannot be written. */
CornuStatus cornu__page_write(const char *path, const char *const *scripts, json_t *data);

/* The same page as *size bytes, to be freed with free(); NULL if out of memory. Borrows `data`. */
char *cornu__page_text(const char *const *scripts, const json_t *data, size_t *size);

/* Pixels (height, width, channels), 1 or 3 channels, as a URL of a PNG for data; NULL if out of
 * memory. */
json_t *cornu__page_picture(int64_t height, int64_t width, int64_t channels,
                            const uint8_t *pixels);

/* A number, null if it is not finite. */
json_t *cornu__page_number(double value);

#endif
