/* A .c file, its header and maybe a file of weights, written together. */
#include <ctype.h>

#include "../../device/version.h"
#include "c_source_internal.h"

/* The headers that the files include, or that those include: with -I of the folder a header of such
 * a name would be read in their place. */
static const char *const headers[] = { "float", "limits", "math", "stddef", "stdint" };

static bool is_of_c(const char *stem)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (!strcmp(stem, headers[i])) return true;
    return false;
}

CornuStatus cornu__c_names(const char *path, const char *name, char prefix[CORNU_C_NAME],
                           char capitals[CORNU_C_NAME])
{
    const char  *base = strrchr(path, '/');
    char         stem[CORNU_C_NAME];
    base = base ? base + 1 : path;
    const size_t length = strlen(base);
    if (length < 3 || strcmp(base + length - 2, ".c") != 0 || strpbrk(base, "\"\\\n"))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: expected the name of a file that ends in .c, "
                           "without quotes and backslashes", path);
    snprintf(stem, sizeof stem, "%.*s", (int)(length - 2), base);
    if (is_of_c(stem))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: its header would stand in the place of C's "
                           "<%s.h>, which it needs; expected another name than float.c, limits.c, "
                           "math.c, stddef.c and stdint.c", path, stem);
    const size_t most = CORNU_C_NAME - 16;   /* with its end */
    if (!cornu__c_spell(prefix, most, name ? name : stem) || (name && strcmp(name, prefix) != 0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "name \"%s\": expected an identifier of C, as "
                           "\"digits\", of at most %zu characters and no two \"_\" in a row, nor "
                           "one at its ends", name ? name : stem, most - 1);
    for (size_t i = 0; i <= strlen(prefix); i++)
        capitals[i] = (char)toupper((unsigned char)prefix[i]);
    return CORNU_OK;
}

static void abandon(CornuCFiles *files)
{
    CornuNewFile *const all[] = { &files->source, &files->header, &files->weights };
    for (int i = 0; i < 3; i++)
        if (all[i]->stream) cornu__file_abandon(all[i]);
}

/* The last of two that are one file would take the place of the other. */
static CornuStatus refuse_same(const CornuNewFile *a, const CornuNewFile *b)
{
    if (!a->stream || !b->stream || !cornu__file_is_same(a, b)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s and %s are one file; expected three files, the "
                       "source, its header and the weights", a->path, b->path);
}

CornuStatus cornu__c_files_open(CornuCFiles *files, const char *path, const char *weights)
{
    const char *slash = strrchr(path, '/');
    *files = (CornuCFiles){ .path = cornu__copy_text(path) };
    if (!files->path) return CORNU_ERR_MEMORY;
    files->path[strlen(path) - 1] = 'h';
    files->name = files->path + (slash ? slash + 1 - path : 0);
    CornuStatus status = cornu__file_create(&files->source, path);
    if (!status) status = cornu__file_create(&files->header, files->path);
    if (!status && weights) status = cornu__file_create(&files->weights, weights);
    if (!status) status = refuse_same(&files->source, &files->header);
    if (!status) status = refuse_same(&files->source, &files->weights);
    if (!status) status = refuse_same(&files->header, &files->weights);
    if (!status) return CORNU_OK;
    abandon(files);
    cornu__release(files->path);
    return status;
}

CornuStatus cornu__c_files_close(CornuCFiles *files, CornuStatus status)
{
    CornuNewFile *const all[] = { &files->weights, &files->source, &files->header };
    for (int i = 0; i < 3 && !status; i++)
        if (all[i]->stream) status = cornu__file_commit(all[i]);
    if (status) abandon(files);
    cornu__release(files->path);
    return status;
}

void cornu__c_begin_source(FILE *to, const char *prefix, const char *header)
{
    fprintf(to, "/*\n * A model as C, written by Cornu %s: its layers in the order of the calls at "
            "the end.\n * Compile it with -O3, and -march=native for this machine.\n */\n"
            "#include \"%s\"\n\n", CORNU_VERSION, header);
    fprintf(to, "#if defined __cplusplus || !defined __STDC_VERSION__ || "
            "__STDC_VERSION__ < 199901L\n#define %s_RESTRICT __restrict\n#else\n"
            "#define %s_RESTRICT restrict\n#endif\n\n",
            prefix, prefix);
}

void cornu__c_begin_header(FILE *to, const char *capitals)
{
    fprintf(to, "/* A model as C, written by Cornu %s. */\n#ifndef %s_H\n#define %s_H\n\n",
            CORNU_VERSION, capitals, capitals);
    fprintf(to, "#include <stddef.h>\n#include <stdint.h>\n\n");
    fprintf(to, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
}

void cornu__c_end_header(FILE *to) { fprintf(to, "#ifdef __cplusplus\n}\n#endif\n#endif\n"); }
