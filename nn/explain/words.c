/* What the texts are made of: names and shapes that fit columns, sentences that fit lines. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "explain_internal.h"

/* "1024x13x13x32", "scalar". */
static const char *extents(char text[96], CornuShape shape)
{
    int used = 0;
    snprintf(text, 96, "scalar");
    for (int i = 0; i < shape.rank; i++)
        used += snprintf(text + used, 96 - (size_t)used, "%s%" PRId64, i ? "x" : "",
                         shape.extent[i]);
    return text;
}

const char *cornu__explain_shape(char text[96], const CornuExecutableStep *step,
                                 const CornuTpuOp *op)
{
    if (step->out_count == 0) return "in place";
    if (!op || !op->product.count) return extents(text, step->out[0].shape);
    const CornuTpuProduct p = op->product;
    return extents(text, p.count > 1 ? cornu_shape(p.count, p.m, p.k, p.n)
                                     : cornu_shape(p.m, p.k, p.n));
}

const char *cornu__explain_fit(char to[CORNU_EXPLAIN_LONGEST], const char *text, int width,
                               int tail)
{
    const int length = (int)strlen(text);
    if (length <= width) snprintf(to, CORNU_EXPLAIN_LONGEST, "%s", text);
    else snprintf(to, CORNU_EXPLAIN_LONGEST, "%.*s..%s", width - 2 - tail, text,
                  text + length - tail);
    return to;
}

bool cornu__explain_layer_of(const char *scope, char *to, size_t size)
{
    static const char end[] = "/gradient";
    const size_t      length = strlen(scope), tail = sizeof end - 1;
    const bool        backward = length >= tail && !strcmp(scope + length - tail, end);
    snprintf(to, size, "%.*s", (int)(backward ? length - tail : length), scope);
    return backward;
}

const char *cornu__explain_fit_layer(char to[CORNU_EXPLAIN_LONGEST], const char *scope, int width)
{
    char       text[CORNU_EXPLAIN_TEXT], whole[CORNU_EXPLAIN_TEXT + 8];
    const bool backward = cornu__explain_layer_of(scope, text, sizeof text);
    snprintf(whole, sizeof whole, "%s%s", text, backward ? "/grad" : "");
    return cornu__explain_fit(to, whole, width, width / 2 - 1);
}

int cornu__explain_wrap(const char *mark, const char *text, int width, FILE *to)
{
    int column = (int)strlen(mark), lines = 1;
    if (to) fputs(mark, to);
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column + 1 + length > width) {
            column = (int)strlen(mark);
            lines++;
            if (to) fprintf(to, "\n%*s", column, "");
        }
        const char *blank = column ? " " : "";
        column += length + *blank / ' ';
        if (to) fprintf(to, "%s%.*s", blank, length, text);
        text += length + (text[length] == ' ');
    }
    if (to) fputc('\n', to);
    return lines;
}

double cornu__explain_sum_here(const CornuExplanation *e)
{
    double sum = 0.0;
    for (int i = 0; i < e->step_count; i++) sum += e->here_s[i];
    return sum;
}

void cornu__explain_count_placed(const CornuExplanation *e, int of[CORNU_PLACED_COUNT])
{
    for (int kind = 0; kind < CORNU_PLACED_COUNT; kind++) of[kind] = 0;
    for (int i = 0; i < e->placed_count; i++) of[e->placed[i].placement.kind]++;
}

int cornu__explain_vmem(const CornuExplanation *e)
{
    int most = -1;
    for (int i = 0; e->tpu && i < e->tpu->op_count; i++)
        if (e->tpu->ops[i].tiling.bytes > (most < 0 ? 0 : e->tpu->ops[most].tiling.bytes)) most = i;
    return most;
}

void cornu__explain_note(CornuExplanation *e, const char *format, ...)
{
    va_list arguments;
    if (e->note_count == CORNU_EXPLAIN_NOTES) return;
    va_start(arguments, format);
    vsnprintf(e->notes[e->note_count], sizeof e->notes[0], format, arguments);
    va_end(arguments);
    e->note_count++;
}
