/* Prints the table of a summary, whose contents model/summary.c gathers. */
#include "summary_table_internal.h"

#include "../../device/text/print.h"
#include "box_table_internal.h"

#include <string.h>

const char *cornu__print_thousands(CornuText *to, int64_t number)
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%lld", (long long)number), at = 0;
    for (int i = 0; i < count; i++) {
        to->text[at++] = digits[i];
        if ((count - i) % 3 == 1 && i + 1 < count && digits[i] != '-') to->text[at++] = ',';
    }
    to->text[at] = '\0';
    return to->text;
}

const char *cornu__print_size(CornuText *to, double bytes)
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
    int unit = 0;
    while (bytes / 1024 >= 1 && unit < 6) {
        bytes /= 1024;
        unit++;
    }
    /* After the last unit Keras divides once more and keeps the unit. */
    cornu__format(to->text, sizeof to->text, "%.2f %s", bytes, units[unit < 6 ? unit : 5]);
    return to->text;
}

static CornuStatus append_shape(CornuStyledText *text, CornuShape shape)
{
    CORNU__TRY(cornu__text_append(text, CORNU__TEXT_PLAIN, "("));
    for (int i = 0; i < shape.rank; i++) {
        int64_t extent = shape.extent[i];
        if (i > 0) CORNU__TRY(cornu__text_append(text, CORNU__TEXT_PLAIN, ", "));
        if (extent == CORNU_NONE)
            CORNU__TRY(cornu__text_append(text, CORNU__TEXT_NONE, "None"));
        else
            CORNU__TRY(cornu__text_append(text, CORNU__TEXT_NUMBER, "%lld", (long long)extent));
    }
    return cornu__text_append(text, CORNU__TEXT_PLAIN, ")");
}

/* One shape, or several as a list. */
static CornuStatus append_outputs(CornuStyledText *text, const CornuSummaryRow *row)
{
    if (!row->built) return cornu__text_append(text, CORNU__TEXT_PLAIN, "?");
    if (row->more_count == 0) return append_shape(text, row->output);
    CORNU__TRY(cornu__text_append(text, CORNU__TEXT_PLAIN, "["));
    CORNU__TRY(append_shape(text, row->output));
    for (int i = 0; i < row->more_count; i++) {
        CORNU__TRY(cornu__text_append(text, CORNU__TEXT_PLAIN, ", "));
        CORNU__TRY(append_shape(text, row->more[i]));
    }
    return cornu__text_append(text, CORNU__TEXT_PLAIN, "]");
}

static CornuStatus append_trainable(CornuStyledText *text, const CornuSummaryRow *row)
{
    if (!row->has_weights) return cornu__text_append(text, CORNU__TEXT_BOLD, "-");
    if (row->frozen) return cornu__text_append(text, CORNU__TEXT_NO, "N");
    return cornu__text_append(text, CORNU__TEXT_YES, "Y");
}

/* The numbers in brackets are coloured. */
static CornuStatus append_connected(CornuStyledText *text, const char *connected)
{
    const char *from = *connected ? connected : "-";
    for (const char *c = from; *c; c++) {
        const int  digits = c > from && c[-1] == '[' ? (int)strspn(c, "0123456789") : 0;
        const bool number = digits > 0;   /* a name may have a bracket, too */
        const int  length = number ? digits : 1;
        CORNU__TRY(cornu__text_append(text, number ? CORNU__TEXT_NUMBER : CORNU__TEXT_PLAIN,
                                      "%.*s", length, c));
        c += length - 1;
    }
    return CORNU_OK;
}

static CornuStatus fill_row(CornuStyledText *texts, const CornuSummaryRow *row)
{
    CornuText number;
    CORNU__TRY(cornu__text_append(&texts[0], CORNU__TEXT_PLAIN, "%*s%s%s (", 3 * row->depth, "",
                                  row->depth ? "└ " : "", row->name));
    CORNU__TRY(cornu__text_append(&texts[0], CORNU__TEXT_SYMBOL, "%s", row->class_name));
    CORNU__TRY(cornu__text_append(&texts[0], CORNU__TEXT_PLAIN, ")"));
    CORNU__TRY(append_outputs(&texts[1], row));
    CORNU__TRY(cornu__text_append(&texts[2], CORNU__TEXT_NUMBER, "%s",
                                  cornu__print_thousands(&number, row->parameters)));
    if (!row->built) CORNU__TRY(cornu__text_append(&texts[2], CORNU__TEXT_PLAIN, " (unbuilt)"));
    if (row->connected) CORNU__TRY(append_connected(&texts[3], row->connected));
    return append_trainable(&texts[row->connected ? 4 : 3], row);
}

static CornuStatus print_rows(const CornuSummary *summary, CornuBoxTable *table)
{
    CornuStyledText texts[CORNU__MAX_COLUMNS] = { { 0 } };
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < summary->row_count && status == CORNU_OK; i++) {
        for (int c = 0; c < CORNU__MAX_COLUMNS; c++)
            cornu__text_clear(&texts[c]);
        status = fill_row(texts, &summary->rows[i]);
        if (status == CORNU_OK) status = cornu__box_table_row(table, texts);
    }
    for (int c = 0; c < CORNU__MAX_COLUMNS; c++)
        cornu__text_free(&texts[c]);
    return status;
}

/* Columns end at fractions of the line. */
static CornuStatus set_columns(CornuBoxTable *table, int64_t line_length, bool branching,
                               bool show_trainable)
{
    static const double plain[] = { 0.45, 0.80, 1.0 }, connected[] = { 0.30, 0.56, 0.74, 1.0 };
    static const struct { const char *title; CornuAlignment alignment; } heads[] = {
        { "Layer (type)", CORNU__LEFT }, { "Output Shape", CORNU__LEFT },
        { "Param #", CORNU__RIGHT }, { "Connected to", CORNU__LEFT },
        { "Trainable", CORNU__CENTRE },
    };
    const double *ends = branching ? connected : plain;
    const int     own = branching ? 4 : 3, trainable = 4;
    int           at = 0;
    table->column_count = own + (show_trainable ? 1 : 0);
    for (int c = 0; c < table->column_count; c++) {
        const int    head = c < own ? c : trainable;
        const double part = c == own ? 1.0 : ends[c] * (show_trainable ? 0.90 : 1.0);
        const int    end = (int)(part * (double)line_length);
        table->columns[c] = (CornuBoxColumn){ heads[head].title, heads[head].alignment, end - at };
        at = end;
        if (table->columns[c].width < 4)
            return cornu__fail(CORNU_ERR_ARGUMENT, "summary: a line of %lld characters leaves "
                               "%d for the column \"%s\", which needs 4",
                               (long long)line_length, table->columns[c].width, heads[head].title);
    }
    return CORNU_OK;
}

static CornuStatus print_total(const char *name, CornuSummaryTotal total, CornuStyledText *text,
                               const CornuBoxTable *table)
{
    CornuText number, size;
    cornu__text_clear(text);
    CORNU__TRY(cornu__text_append(text, CORNU__TEXT_BOLD, " %s: ", name));
    CORNU__TRY(cornu__text_append(text, CORNU__TEXT_NUMBER, "%s",
                                  cornu__print_thousands(&number, total.count)));
    CORNU__TRY(cornu__text_append(text, CORNU__TEXT_PLAIN, " (%s)",
                                  cornu__print_size(&size, (double)total.bytes)));
    return cornu__text_print(text, table->terminal, table->file);
}

static CornuStatus print_totals(const CornuSummary *summary, CornuStyledText *text,
                                const CornuBoxTable *table)
{
    const CornuSummaryTotal parts[] = { summary->trainable, summary->non_trainable,
                                        summary->optimizer };
    CornuSummaryTotal all = { 0, 0 };
    for (int i = 0; i < 3; i++) {
        all.count += parts[i].count;
        all.bytes += parts[i].bytes;
    }
    CORNU__TRY(print_total("Total params", all, text, table));
    CORNU__TRY(print_total("Trainable params", summary->trainable, text, table));
    CORNU__TRY(print_total("Non-trainable params", summary->non_trainable, text, table));
    if (!summary->optimizer_built) return CORNU_OK;
    return print_total("Optimizer params", summary->optimizer, text, table);
}

CornuStatus cornu__summary_print(const CornuSummary *summary, int64_t line_length,
                                 bool show_trainable, CornuTerminal terminal, FILE *file)
{
    const int most = (summary->branching ? 108 : 88) + (show_trainable ? 12 : 0);
    if (line_length == 0)
        line_length = terminal.columns - 4 < most ? terminal.columns - 4 : most;
    if (line_length > 10000)
        return cornu__fail(CORNU_ERR_ARGUMENT, "summary: line_length is %lld, expected at most "
                           "10000", (long long)line_length);

    CornuBoxTable table = { .terminal = terminal, .file = file };
    CORNU__TRY(set_columns(&table, line_length, summary->branching, show_trainable));

    CornuStyledText text = { 0 };
    CornuStatus status = cornu__text_append(&text, CORNU__TEXT_BOLD, "Model: \"%s\"",
                                            summary->name);
    if (status == CORNU_OK) status = cornu__text_print(&text, terminal, file);
    if (status == CORNU_OK) status = cornu__box_table_begin(&table, (int)line_length);
    if (status == CORNU_OK) status = print_rows(summary, &table);
    if (status == CORNU_OK) {
        cornu__box_table_end(&table);
        status = print_totals(summary, &text, &table);
    }
    cornu__text_free(&text);
    return status;
}
