/* The .c file, its header, and the file of weights. They have temporary names first. */
#include <ctype.h>
#include <math.h>

#include "../../device/text/print.h"
#include "c_source_internal.h"

static size_t bytes_of(const CornuCModel *c, CornuCPlaceOf where)
{
    size_t bytes = 0;
    for (int i = 0; i < c->variable_count; i++)
        if (c->variables[i].where == where) bytes += cornu_type_bytes(c->variables[i].type);
    return bytes;
}

static bool has(const CornuCModel *c, CornuCPlaceOf where)
{
    for (int i = 0; i < c->variable_count; i++)
        if (c->variables[i].where == where) return true;
    return false;
}

/* Where a member of so many bytes an element begins, after `end` bytes. */
static size_t aligned(size_t end, CornuDtype dtype)
{
    const size_t each = cornu_dtype_size(dtype);
    return (end + each - 1) / each * each;
}

/* The size of PREFIX_weights: a struct is as long as a multiple of its widest element. */
static size_t end_of_weights(const CornuCModel *c)
{
    size_t     end = 0;
    CornuDtype widest = CORNU_U8;
    for (int i = 0; i < c->variable_count; i++) {
        const CornuCVariable *v = &c->variables[i];
        if (v->where != CORNU_C_WEIGHT) continue;
        end = aligned(end, v->type.dtype) + cornu_type_bytes(v->type);
        if (cornu_dtype_size(v->type.dtype) > cornu_dtype_size(widest)) widest = v->type.dtype;
    }
    return end ? aligned(end, widest) : 1;
}

/* ---- The header ---- */

/* Where the weights lie that an optimizer updates together. */
static void write_parts(FILE *to, const CornuCVariable *v)
{
    CornuText shape;
    for (int i = 0; i < v->variable->segment_count; i++) {
        const CornuSegment *s = &v->variable->segments[i];
        if (!s->part) continue;
        fprintf(to, "        /* from %lld: ", (long long)s->first);
        for (const char *at = s->part->name; *at; at++)
            fputc(isprint((unsigned char)*at) && *at != '*' ? *at : '_', to);
        fprintf(to, " %s */\n", cornu_shape_print(&shape, s->part->type.shape));
    }
}

static void write_members(FILE *to, const CornuCModel *c, CornuCPlaceOf where)
{
    CornuText shape;
    for (int i = 0; i < c->variable_count; i++) {
        const CornuCVariable *v = &c->variables[i];
        if (v->where != where) continue;
        fprintf(to, "    %s %s[%lld];   /* %s */\n", cornu__c_type(v->type.dtype), v->name,
                (long long)cornu_type_count(v->type), cornu_shape_print(&shape, v->type.shape));
        write_parts(to, v);
    }
    if (!has(c, where)) fprintf(to, "    char none;\n");
}

static void write_arguments(FILE *to, const CornuCData *data, int count, bool constant)
{
    for (int i = 0; i < count; i++)
        fprintf(to, ", %s%s *%s", constant ? "const " : "", cornu__c_type(data[i].type.dtype),
                data[i].name);
}

static void write_predict(FILE *to, const CornuCModel *c)
{
    fprintf(to, "void %s_predict(const %s_weights *weights, void *scratch", c->prefix, c->prefix);
    write_arguments(to, c->x, c->x_count, true);
    write_arguments(to, c->y, c->y_count, false);
    fprintf(to, ")");
}

static void write_step(FILE *to, const CornuCModel *c)
{
    fprintf(to, "void %s_step(%s_state *state, void *scratch", c->prefix, c->prefix);
    write_arguments(to, c->fed_x, c->x_count, true);
    write_arguments(to, c->fed_y, c->y_count, true);
    fprintf(to, ")");
}

static void write_types(FILE *to, const CornuCData *data, int count)
{
    CornuText shape;
    for (int i = 0; i < count; i++)
        fprintf(to, " *     %-12s %s %s\n", data[i].name, cornu__c_type(data[i].type.dtype),
                cornu_shape_print(&shape, data[i].type.shape));
}

static void write_prototypes(FILE *to, const CornuCModel *c)
{
    const char *p = c->prefix;
    fprintf(to, "/* A prediction:\n");
    write_types(to, c->x, c->x_count);
    write_types(to, c->y, c->y_count);
    fprintf(to, " * `scratch` has %s_SCRATCH_BYTES, aligned as a double is. */\n", c->capitals);
    write_predict(to, c);
    fprintf(to, ";\n\n");
    if (!c->config->train) return;
    fprintf(to, "/* The state before the first step%s. */\n",
            c->config->weights ? ", but for the weights, which are those of load" : "");
    fprintf(to, "void %s_init(%s_state *state);\n\n", p, p);
    fprintf(to, "/* A step of training: forward, backward, and the optimizer's update.\n");
    write_types(to, c->fed_x, c->x_count);
    write_types(to, c->fed_y, c->y_count);
    fprintf(to, " * `scratch` has %s_STEP_SCRATCH_BYTES. */\n", c->capitals);
    write_step(to, c);
    fprintf(to, ";\n\n");
    fprintf(to, "/* The weights as %s_WEIGHTS_BYTES bytes, in the order of this machine. */\n",
            c->capitals);
    fprintf(to, "void %s_save(const %s_state *state, unsigned char *bytes);\n", p, p);
    fprintf(to, "void %s_load(%s_state *state, const unsigned char *bytes);\n\n", p, p);
}

static void write_header(FILE *to, const CornuCModel *c)
{
    const char *p = c->prefix, *m = c->capitals;
    cornu__c_begin_header(to, m);
    fprintf(to, "#define %s_SCRATCH_BYTES %zu\n", m, c->predict.scratch ? c->predict.scratch : 1);
    if (c->config->train)
        fprintf(to, "#define %s_STEP_SCRATCH_BYTES %zu\n", m,
                c->train.scratch ? c->train.scratch : 1);
    fprintf(to, "#define %s_WEIGHTS_BYTES sizeof(%s_weights)\n\n", m, p);
    fprintf(to, "typedef struct {\n");
    write_members(to, c, CORNU_C_WEIGHT);
    fprintf(to, "} %s_weights;\n\n", p);
    if (c->config->weights) {
        fprintf(to, "/* The file of weights that was written with this one has the bytes of "
                "one:\n * a program reads or maps it. */\n");
        fprintf(to, "typedef char %s_weights_are_as_written[sizeof(%s_weights) == %zu ? 1 : -1];"
                "\n\n", p, p, end_of_weights(c));
    } else {
        fprintf(to, "/* The weights as they are when this is written: %zu bytes. */\n",
                bytes_of(c, CORNU_C_WEIGHT));
        fprintf(to, "extern const %s_weights %s_trained;\n\n", p, p);
    }
    if (c->config->train) {
        fprintf(to, "/* What a step changes. */\ntypedef struct {\n    %s_weights weights;\n", p);
        if (has(c, CORNU_C_STATE)) write_members(to, c, CORNU_C_STATE);
        fprintf(to, "} %s_state;\n\n", p);
    }
    write_prototypes(to, c);
    cornu__c_end_header(to);
}

/* ---- The values ---- */

/* A part of a variable's values, of bounded memory. */
static CornuStatus write_values(FILE *to, const CornuCVariable *v)
{
    const int64_t count = cornu_type_count(v->type);
    CornuArray    values = { v->type, cornu__allocate(cornu_type_bytes(v->type) + 1, 1) };
    CornuCText    text = { 0 };
    if (!values.data) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu__c_read(v, values);
    for (int64_t i = 0; i < count && !status; i++) {
        const double number = cornu_array_get(values, i);
        char         plain[40];
        if (i) fputc(',', to);
        fputs(i % 8 == 0 ? "\n    " : " ", to);
        if (v->type.dtype == CORNU_F32 && isfinite(number)) {   /* there may be millions */
            cornu__format(plain, sizeof plain, "%.9g", number);
            fputs(plain, to);
            fputs(strpbrk(plain, ".e") ? "f" : ".0f", to);
            continue;
        }
        text.size = 0;
        cornu__c_number(&text, v->type.dtype, number);
        fputs(text.text ? text.text : "0", to);
        status = text.status;
    }
    if (count == 0) fprintf(to, "0");
    cornu__release(text.text);
    cornu__release(values.data);
    return status;
}

static CornuStatus write_constants(FILE *to, const CornuCModel *c)
{
    CornuText shape;
    for (int i = 0; i < c->variable_count; i++) {
        const CornuCVariable *v = &c->variables[i];
        if (v->where != CORNU_C_CONSTANT) continue;
        fprintf(to, "/* %s */\nstatic const %s %s[%lld] = {",
                cornu_shape_print(&shape, v->type.shape), cornu__c_type(v->type.dtype),
                v->at[0], (long long)cornu_type_count(v->type));
        CORNU__TRY(write_values(to, v));
        fprintf(to, "\n};\n\n");
    }
    return CORNU_OK;
}

static CornuStatus write_trained(FILE *to, const CornuCModel *c)
{
    bool any = false;
    if (c->config->weights) return CORNU_OK;
    fprintf(to, "const %s_weights %s_trained = {\n", c->prefix, c->prefix);
    for (int i = 0; i < c->variable_count; i++) {
        const CornuCVariable *v = &c->variables[i];
        if (v->where != CORNU_C_WEIGHT) continue;
        fprintf(to, "%s/* %s */ {", any ? ",\n" : "", v->name);
        CORNU__TRY(write_values(to, v));
        fprintf(to, "\n}");
        any = true;
    }
    fprintf(to, "%s\n};\n\n", any ? "" : "0");
    return CORNU_OK;
}

static void write_zeros(FILE *to, size_t count)
{
    while (count-- > 0) fputc(0, to);
}

/* The bytes of a PREFIX_weights. */
static CornuStatus write_weights(FILE *to, const CornuCModel *c)
{
    size_t end = 0;
    for (int i = 0; i < c->variable_count; i++) {
        const CornuCVariable *v = &c->variables[i];
        if (v->where != CORNU_C_WEIGHT) continue;
        const size_t begin = aligned(end, v->type.dtype), bytes = cornu_type_bytes(v->type);
        CornuArray   values = { v->type, cornu__allocate(bytes + 1, 1) };
        if (!values.data) return CORNU_ERR_MEMORY;
        const CornuStatus status = cornu__c_read(v, values);
        write_zeros(to, begin - end);
        fwrite(values.data, 1, bytes, to);
        cornu__release(values.data);
        CORNU__TRY(status);
        end = begin + bytes;
    }
    write_zeros(to, end_of_weights(c) - end);
    return CORNU_OK;
}

/* ---- Functions ---- */

/* All elements alike, as slots are at first; false: they differ. */
static bool uniform(const CornuCVariable *v, double *number, CornuStatus *status)
{
    CornuArray values = { v->type, cornu__allocate(cornu_type_bytes(v->type) + 1, 1) };
    if (!values.data) {
        *status = CORNU_ERR_MEMORY;
        return false;
    }
    *status = cornu__c_read(v, values);
    bool same = !*status;
    for (int64_t i = 0; same && i < cornu_type_count(v->type); i++) {
        const double x = cornu_array_get(values, i);
        if (i == 0) *number = x;
        same = x == *number;
    }
    cornu__release(values.data);
    return same;
}

static CornuStatus write_init(FILE *to, const CornuCModel *c)
{
    fprintf(to, "void %s_init(%s_state *state)\n{\n", c->prefix, c->prefix);
    if (c->config->weights) fprintf(to, "    (void)state;\n");
    else fprintf(to, "    state->weights = %s_trained;\n", c->prefix);
    for (int i = 0; i < c->variable_count; i++) {
        const CornuCVariable *v = &c->variables[i];
        double      number = 0.0;
        CornuStatus status = CORNU_OK;
        CornuCText  text = { 0 };
        if (v->where != CORNU_C_STATE) continue;
        fprintf(to, "    for (ptrdiff_t i = 0; i < %lld; i++) state->%s[i] = ",
                (long long)cornu_type_count(v->type), v->name);
        if (uniform(v, &number, &status)) {
            cornu__c_number(&text, v->type.dtype, number);
            fprintf(to, "%s;\n", text.text ? text.text : "0");
            if (!status) status = text.status;
        } else if (!status) {
            fprintf(to, "%s_%s_0[i];\n", c->prefix, v->name);
        }
        cornu__release(text.text);
        CORNU__TRY(status);
    }
    fprintf(to, "}\n\n");
    return CORNU_OK;
}

/* What a state begins with, where elements differ. */
static CornuStatus write_beginnings(FILE *to, const CornuCModel *c)
{
    for (int i = 0; i < c->variable_count; i++) {
        const CornuCVariable *v = &c->variables[i];
        double      number;
        CornuStatus status = CORNU_OK;
        if (v->where != CORNU_C_STATE || uniform(v, &number, &status)) continue;
        CORNU__TRY(status);
        fprintf(to, "static const %s %s_%s_0[%lld] = {", cornu__c_type(v->type.dtype), c->prefix,
                v->name, (long long)cornu_type_count(v->type));
        CORNU__TRY(write_values(to, v));
        fprintf(to, "\n};\n\n");
    }
    return CORNU_OK;
}

static void write_bytes(FILE *to, const CornuCModel *c)
{
    const char *p = c->prefix;
    fprintf(to, "void %s_save(const %s_state *state, unsigned char *bytes)\n{\n", p, p);
    fprintf(to, "    const unsigned char *from = (const unsigned char *)&state->weights;\n");
    fprintf(to, "    for (size_t i = 0; i < sizeof state->weights; i++) bytes[i] = from[i];\n"
                "}\n\n");
    fprintf(to, "void %s_load(%s_state *state, const unsigned char *bytes)\n{\n", p, p);
    fprintf(to, "    unsigned char *to = (unsigned char *)&state->weights;\n");
    fprintf(to, "    for (size_t i = 0; i < sizeof state->weights; i++) to[i] = bytes[i];\n}\n");
}

static void write_body(FILE *to, const CornuCFunction *f, const char *unused)
{
    fprintf(to, "\n{\n    unsigned char *const s = (unsigned char *)scratch;\n");
    fprintf(to, "    (void)s, (void)%s;\n%s}\n\n", unused, f->calls.text ? f->calls.text : "");
}

static CornuStatus write_source(FILE *to, const CornuCModel *c, const char *header)
{
    CornuCText prelude = { 0 };
    cornu__c_prelude(&c->source, &prelude);
    cornu__c_begin_source(to, c->prefix, header);
    fprintf(to, "%s", prelude.text ? prelude.text : "");
    CornuStatus status = prelude.status;
    cornu__release(prelude.text);
    if (!status) status = write_constants(to, c);
    if (!status) status = write_trained(to, c);
    if (!status && c->config->train) status = write_beginnings(to, c);
    if (status) return status;
    fprintf(to, "%s", c->source.functions.text ? c->source.functions.text : "");
    write_predict(to, c);
    write_body(to, &c->predict, "weights");
    if (!c->config->train) return CORNU_OK;
    CORNU__TRY(write_init(to, c));
    write_step(to, c);
    write_body(to, &c->train, "state");
    write_bytes(to, c);
    return CORNU_OK;
}

CornuStatus cornu__c_write(CornuCModel *c)
{
    CornuCFiles files;
    CORNU__TRY(cornu__c_files_open(&files, c->config->path, c->config->weights));
    write_header(files.header.stream, c);
    CornuStatus status = write_source(files.source.stream, c, files.name);
    if (!status && files.weights.stream) status = write_weights(files.weights.stream, c);
    return cornu__c_files_close(&files, status);
}
