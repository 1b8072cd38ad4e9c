/* Lookups in tables, rows of tables, and random numbers. */
#include "source_internal.h"

static void print_row(CornuCText *to, const CornuCCall *call, const char *index, int64_t rows)
{
    cornu__c_helper(call->section->source, CORNU_C_HELPER_ROW);
    cornu__c_print(to, "%s_row(%s, %lld)", cornu__c_prefix(call->section), index, (long long)rows);
}

/* The index of no row, where there is one; NULL: there is none. */
static const char *padding_of(int64_t padded, int64_t rows, char *text, size_t size)
{
    if (padded == CORNU_NOT_PADDED) return NULL;
    snprintf(text, size, "%lld", (long long)(padded == CORNU_PADDED_BELOW ? -1 : rows));
    return text;
}

static void write_gather(CornuCText *to, const CornuCCall *call)
{
    const int64_t rows = call->op.in[0].shape.extent[0], columns = call->op.in[0].shape.extent[1];
    char          text[24], index[96];
    const char   *none = padding_of(call->op.attributes->gather.padded, rows, text, sizeof text);
    snprintf(index, sizeof index, "%s[i]", call->name[1]);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) {\n",
                   (long long)cornu_type_count(call->op.in[1]));
    to->depth++;
    cornu__c_print(to, "const %s *const a = %s + ", cornu__c_type(call->op.in[0].dtype),
                   call->name[0]);
    print_row(to, call, index, rows);
    cornu__c_print(to, " * %lld;\n", (long long)columns);
    cornu__c_print(to, "for (ptrdiff_t c = 0; c < %lld; c++)\n", (long long)columns);
    cornu__c_print(to, "    %s[i * %lld + c] = ", call->out[0], (long long)columns);
    if (none) cornu__c_print(to, "%s == %s ? 0 : ", index, none);
    cornu__c_print(to, "a[c];\n");
    to->depth--;
    cornu__c_print(to, "}\n");
}

static void write_gather_grad(CornuCText *to, const CornuCCall *call)
{
    const int64_t rows = call->out_type[0].shape.extent[0];
    const int64_t columns = call->out_type[0].shape.extent[1];
    char          text[24], index[96];
    const char *none = padding_of(call->op.attributes->gather_grad.padded, rows, text, sizeof text);
    snprintf(index, sizeof index, "%s[i]", call->name[1]);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) %s[i] = 0.0f;\n",
                   (long long)(rows * columns), call->out[0]);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) {\n",
                   (long long)cornu_type_count(call->op.in[1]));
    to->depth++;
    if (none) cornu__c_print(to, "if (%s == %s) continue;\n", index, none);
    cornu__c_print(to, "float *const a = %s + ", call->out[0]);
    print_row(to, call, index, rows);
    cornu__c_print(to, " * %lld;\n", (long long)columns);
    cornu__c_print(to, "for (ptrdiff_t c = 0; c < %lld; c++) a[c] += %s[i * %lld + c];\n",
                   (long long)columns, call->name[0], (long long)columns);
    to->depth--;
    cornu__c_print(to, "}\n");
}

static void write_one_hot(CornuCText *to, const CornuCCall *call)
{
    const int64_t depth = call->op.attributes->one_hot.depth;
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++)\n",
                   (long long)cornu_type_count(call->op.in[0]));
    cornu__c_print(to, "    for (ptrdiff_t c = 0; c < %lld; c++)\n", (long long)depth);
    cornu__c_print(to, "        %s[i * %lld + c] = (%s)(%s[i] == (%s)c);\n", call->out[0],
                   (long long)depth, cornu__c_type(call->out_type[0].dtype), call->name[0],
                   cornu__c_type(call->op.in[0].dtype));
}

/* Row i of axis 0 is row position + i; the elements of a row are drawn by four. */
static void write_random_uniform(CornuCText *to, const CornuCCall *call)
{
    const CornuShape shape = call->out_type[0].shape;
    const int64_t    rows = shape.rank > 0 ? shape.extent[0] : 1;
    const int64_t    row = rows > 0 ? cornu_shape_count(shape) / rows : 0;
    cornu__c_helper(call->section->source, CORNU_C_HELPER_PHILOX);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++)\n", (long long)rows);
    cornu__c_print(to, "    for (ptrdiff_t c = 0; c < %lld; c += 4) {\n", (long long)row);
    to->depth += 2;
    cornu__c_print(to, "float words[4];\n");
    cornu__c_print(to, "%s_philox((uint64_t)%s[0], (uint32_t)(c / 4), (uint32_t)(%s[0] + i),\n",
                   cornu__c_prefix(call->section), call->name[0], call->name[2]);
    cornu__c_print(to, "    (uint32_t)%s[0], %lluu, words);\n", call->name[1],
                   (unsigned long long)call->op.attributes->random.generator);
    cornu__c_print(to, "for (ptrdiff_t l = 0; l < 4 && c + l < %lld; l++) "
                   "%s[i * %lld + c + l] = words[l];\n", (long long)row, call->out[0],
                   (long long)row);
    to->depth -= 2;
    cornu__c_print(to, "    }\n");
}

/* The distinct indices, ascending: each inserted where it belongs. */
static void write_unique_rows(CornuCText *to, const CornuCCall *call)
{
    const long long count = (long long)cornu_type_count(call->op.in[0]);
    const long long rows = (long long)call->op.attributes->rows.rows;
    const char *const y = call->out[0], *const at = call->out[1], *const x = call->name[0];
    cornu__c_print(to, "{\n");
    to->depth++;
    cornu__c_print(to, "ptrdiff_t count = 0;\n");
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) {\n", count);
    cornu__c_print(to, "    ptrdiff_t k = count;\n");
    cornu__c_print(to, "    while (k > 0 && %s[k - 1] >= %s[i]) k--;\n", y, x);
    cornu__c_print(to, "    if (k < count && %s[k] == %s[i]) continue;\n", y, x);
    cornu__c_print(to, "    for (ptrdiff_t l = count++; l > k; l--) %s[l] = %s[l - 1];\n", y, y);
    cornu__c_print(to, "    %s[k] = (int32_t)%s[i];\n", y, x);
    cornu__c_print(to, "}\n");
    cornu__c_print(to, "for (ptrdiff_t k = count; k < %lld; k++) %s[k] = %lld;\n", count, y, rows);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++)\n", count);
    cornu__c_print(to, "    for (%s[i] = 0; %s[%s[i]] != %s[i];) %s[i]++;\n", at, y, at, x, at);
    cornu__c_close(to, 1);
}

static void write_scatter_rows(CornuCText *to, const CornuCCall *call)
{
    const CornuShape shape = call->op.in[0].shape;
    const long long  rows = (long long)shape.extent[0], columns = (long long)shape.extent[1];
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) %s[i] = %s[i];\n", rows * columns,
                   call->out[0], call->name[0]);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++)\n",
                   (long long)cornu_type_count(call->op.in[1]));
    cornu__c_print(to, "    for (ptrdiff_t c = 0; c < %lld && %s[i] < %lld; c++)\n", columns,
                   call->name[1], rows);
    cornu__c_print(to, "        %s[%s[i] * %lld + c] = %s[i * %lld + c];\n", call->out[0],
                   call->name[1], columns, call->name[2], columns);
}

const CornuCRule *const cornu__gather_c = &(const CornuCRule){ .write = write_gather };
const CornuCRule *const cornu__gather_grad_c = &(const CornuCRule){ .write = write_gather_grad };
const CornuCRule *const cornu__one_hot_c = &(const CornuCRule){ .write = write_one_hot };
const CornuCRule *const cornu__random_uniform_c =
    &(const CornuCRule){ .write = write_random_uniform };
const CornuCRule *const cornu__unique_rows_c = &(const CornuCRule){ .write = write_unique_rows };
const CornuCRule *const cornu__scatter_rows_c = &(const CornuCRule){ .write = write_scatter_rows };
