/* A file of JSON. */
#ifndef CORNU_EXAMPLES_JSON_FILE_H
#define CORNU_EXAMPLES_JSON_FILE_H

#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>
#include <jansson.h>

/* Writes what it frees, in the order in which it was made; 17 digits tell doubles apart. NULL is a
 * lack of memory. */
static inline CornuStatus json_file_write(json_t *root, const char *path)
{
    char       *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    CornuStatus status = text ? cornu_file_write(path, text, strlen(text))
                              : cornu_error_set(CORNU_ERR_MEMORY, "%s: no memory", path);
    free(text);
    json_decref(root);
    return status;
}

#endif
