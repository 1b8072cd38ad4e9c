#include "arrays.h"

#include <stdio.h>
#include <string.h>

/* "x, y, 3 others" */
static void list_names(const CornuNpz *file, char *to, size_t size)
{
    size_t    used = 0;
    const int count = cornu_npz_count(file);
    to[0] = '\0';
    for (int i = 0; i < count && i < 8 && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%.40s", i ? ", " : "",
                                 cornu_npz_at(file, i)->name);
    if (count > 8 && used < size) snprintf(to + used, size - used, ", %d others", count - 8);
}

static CornuStatus pick(Loaded *to, const char *path, const char *name, const char *usual)
{
    char                   names[400];
    const CornuNamedArray *found = cornu_npz_find(to->file, name ? name : usual);
    if (!found && !name && cornu_npz_count(to->file) == 1) found = cornu_npz_at(to->file, 0);
    if (found) {
        to->array = found->array;
        return CORNU_OK;
    }
    list_names(to->file, names, sizeof names);
    return cornu_error_set(CORNU_ERR_FORMAT, "%s: no array \"%s\", expected one of: %s", path,
                           name ? name : usual, names);
}

CornuStatus arrays_load(Loaded *to, const char *what, const char *usual)
{
    char path[4096];
    *to = (Loaded){ .file = NULL };
    if (!what) return CORNU_OK;
    const char *colon = strstr(what, ".npz:");
    const int   length = colon ? (int)(colon - what) + 4 : (int)strlen(what);
    snprintf(path, sizeof path, "%.*s", length, what);
    to->file = cornu_npz_open(path);
    return to->file ? pick(to, path, colon ? colon + 5 : NULL, usual) : cornu_error_status();
}

void arrays_free(Loaded *loaded)
{
    cornu_npz_close(loaded->file);
    *loaded = (Loaded){ .file = NULL };
}

CornuStatus arrays_fit(const char *what, CornuArray array, CornuType rows)
{
    CornuText a, b;
    const int rank = array.type.shape.rank;
    bool      fits = rank == rows.shape.rank;
    for (int i = 1; fits && i < rank; i++)
        fits = rows.shape.extent[i] == CORNU_NONE ||
               rows.shape.extent[i] == array.type.shape.extent[i];
    if (fits) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_SHAPE, "%s is %s, expected rows of %s", what,
                           cornu_type_print(&a, array.type), cornu_shape_print(&b, rows.shape));
}
