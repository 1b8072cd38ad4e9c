#include "labels.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/open.h"

enum { MAX_BYTES = 1 << 20 };

/* The names as one string, with their separator. */
typedef struct {
    const char *origin;     /* for messages */
    char       *text;       /* owned */
    char        separator;
} List;

static CornuStatus read_file(const char *path, char **text)
{
    FILE *file;
    if (cornu__open_to_read(path, &file))
        return cornu__fail(CORNU_ERR_FILE, "%s; expected a file with one name per line, or names "
                           "separated by commas", cornu_error_message());
    char        *bytes = cornu__allocate(MAX_BYTES + 1, 1);
    const size_t size = bytes ? fread(bytes, 1, MAX_BYTES + 1, file) : 0;
    const bool   broken = ferror(file);
    fclose(file);
    *text = bytes;
    if (!bytes) return CORNU_ERR_MEMORY;
    if (broken) return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read", path);
    if (size > MAX_BYTES)
        return cornu__fail(CORNU_ERR_VALUE, "%s: is longer than %d bytes, expected one name per "
                           "line", path, MAX_BYTES);
    if (memchr(bytes, '\0', size))
        return cornu__fail(CORNU_ERR_VALUE, "%s: contains NUL bytes, expected text", path);
    if (size && bytes[size - 1] == '\n') bytes[size - 1] = '\0';   /* the end of the last line */
    return CORNU_OK;
}

static CornuStatus open_list(const char *list_or_path, List *list)
{
    const bool is_list = strchr(list_or_path, ',') != NULL;
    *list = (List){ .origin = is_list ? "labels" : list_or_path,
                    .separator = is_list ? ',' : '\n' };
    if (!is_list) return read_file(list_or_path, &list->text);
    list->text = cornu__copy_text(list_or_path);
    return list->text ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Terminates the name at the separator or the end of the string and trims it; *next is the start of
 * the following one, or NULL. */
static char *cut_name(char *at, char separator, char **next)
{
    char *end = strchr(at, separator);
    *next = end ? end + 1 : NULL;
    if (end) *end = '\0';
    at += strspn(at, " \t\r");
    for (end = at + strlen(at); end > at && strchr(" \t\r", end[-1]); end--) end[-1] = '\0';
    return at;
}

static CornuStatus check_name(const List *list, int number, const char *name)
{
    if (!*name)
        return cornu__fail(CORNU_ERR_VALUE, "%s: name %d is empty", list->origin, number);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return cornu__fail(CORNU_ERR_VALUE, "%s: name %d contains the control character %d",
                               list->origin, number, *c);
    return CORNU_OK;
}

/* Splits the string, checks all names and stores the first `count`. */
static CornuStatus split_labels(const List *list, const char **names, int count)
{
    int   found = 0;
    char *next = list->text;
    while (next) {
        const char *name = cut_name(next, list->separator, &next);
        CORNU__TRY(check_name(list, found + 1, name));
        for (int i = 0; i < found && i < count; i++)
            if (!strcmp(names[i], name))
                return cornu__fail(CORNU_ERR_VALUE, "%s: names %d and %d are both \"%s\", expected "
                                   "%d different ones", list->origin, i + 1, found + 1, name,
                                   count);
        if (found < count) names[found] = name;
        found++;
    }
    if (found == count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "%s: %d name%s, expected %d", list->origin, found,
                       found == 1 ? "" : "s", count);
}

/* One block: the pointers, followed by the strings. */
static char **pack_labels(const char **names, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += strlen(names[i]) + 1;
    char **block = cornu__allocate((size_t)count * sizeof *block + bytes, 1);
    if (!block) return NULL;
    char *to = (char *)(block + count);
    for (int i = 0; i < count; i++) {
        block[i] = to;
        to = memcpy(to, names[i], strlen(names[i]) + 1);
        to += strlen(to) + 1;
    }
    return block;
}

char **cornu_labels_read(const char *list_or_path, int count)
{
    if (cornu__refused()) return NULL;
    List         list;
    char       **block = NULL;
    const char **names = cornu__allocate((size_t)count, sizeof *names);
    if (names && open_list(list_or_path, &list) == CORNU_OK &&
        split_labels(&list, names, count) == CORNU_OK)
        block = pack_labels(names, count);
    if (names) cornu__release(list.text);
    cornu__release(names);
    return block ? block : cornu__null();
}
