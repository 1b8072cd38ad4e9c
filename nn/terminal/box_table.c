#include "box_table_internal.h"

#include "../../device/memory_internal.h"
#include "../../device/text/print.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---- Styled text ---- */

/* Splits UTF-8 into characters; the caller has reserved a cell per byte. Control characters, of one
 * byte or two, become blanks: they would move the cursor. */
static void append_cells(CornuStyledText *text, CornuTextKind kind, const char *bytes)
{
    for (; *bytes; bytes++) {
        const unsigned char byte = (unsigned char)*bytes;
        CornuCell *last = text->count > 0 ? &text->cells[text->count - 1] : NULL;
        const bool continues = (byte & 0xC0) == 0x80;
        if (continues && last && last->length == 1 && (unsigned char)last->bytes[0] == 0xC2 &&
            byte < 0xA0)
            last->bytes[0] = ' ';
        else if (continues && last && last->length < sizeof last->bytes)
            last->bytes[last->length++] = *bytes;
        else
            text->cells[text->count++] = (CornuCell){
                .bytes = { byte < ' ' || byte == 0x7F ? ' ' : *bytes }, .length = 1,
                .kind = (unsigned char)kind,
            };
    }
}

CornuStatus cornu__text_append(CornuStyledText *text, CornuTextKind kind, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = cornu__vformat(NULL, 0, format, arguments);
    va_end(arguments);
    char *bytes = cornu__allocate((size_t)length + 1, 1);
    CornuStatus status = bytes ? cornu__reserve(&text->cells, &text->space, text->count, length,
                                                sizeof *text->cells)
                               : CORNU_ERR_MEMORY;
    if (status == CORNU_OK) {
        cornu__vformat(bytes, (size_t)length + 1, format, again);
        append_cells(text, kind, bytes);
    }
    va_end(again);
    cornu__release(bytes);
    return status;
}

void cornu__text_clear(CornuStyledText *text) { text->count = 0; }

void cornu__text_free(CornuStyledText *text) { cornu__release(text->cells); }

/* ---- Printing a line: cut at the width of the terminal, runs of one kind within codes ---- */

typedef struct {
    CornuTerminal terminal;
    FILE         *file;
    int           used;
    unsigned char open;       /* the kind of the run that is still open */
} Line;

static const char *const codes[][2] = {           /* with 16 and with 256 colours */
    [CORNU__TEXT_PLAIN]  = { "", "" },
    [CORNU__TEXT_BOLD]   = { "1", "1" },
    [CORNU__TEXT_NUMBER] = { "32", "38;5;34" },
    [CORNU__TEXT_NONE]   = { "96", "38;5;45" },
    [CORNU__TEXT_SYMBOL] = { "94", "38;5;33" },
    [CORNU__TEXT_YES]    = { "1;32", "1;38;5;34" },
    [CORNU__TEXT_NO]     = { "1;91", "1;91" },
};

static const char *code_of(CornuStyling styling, unsigned char kind)
{
    switch (styling) {
    case CORNU_256_COLOURS: return codes[kind][1];
    case CORNU_16_COLOURS:  return codes[kind][0];
    case CORNU_BOLD:        return codes[kind][0][0] == '1' ? "1" : "";
    case CORNU_PLAIN:       break;
    }
    return "";
}

static void end_run(Line *line)
{
    if (*code_of(line->terminal.styling, line->open)) fputs("\033[0m", line->file);
    line->open = CORNU__TEXT_PLAIN;
}

static void put_cell(Line *line, CornuCell cell)
{
    if (line->used >= line->terminal.columns) return;
    line->used++;
    if (cell.kind != line->open) {
        const char *code = code_of(line->terminal.styling, cell.kind);
        end_run(line);
        if (*code) fprintf(line->file, "\033[%sm", code);
        line->open = cell.kind;
    }
    if (cell.length == 1 || line->terminal.utf8)
        fwrite(cell.bytes, 1, cell.length, line->file);
    else
        fputc('?', line->file);
}

static void put_cells(Line *line, const CornuCell *cells, int count)
{
    for (int i = 0; i < count; i++)
        put_cell(line, cells[i]);
}

static void put_blanks(Line *line, int count, CornuTextKind kind)
{
    for (int i = 0; i < count; i++)
        put_cell(line, (CornuCell){ " ", 1, (unsigned char)kind });
}

static void put_border(Line *line, const char *character, int count)
{
    end_run(line);
    for (int i = 0; i < count && line->used < line->terminal.columns; i++, line->used++)
        fputs(character, line->file);
}

static void end_line(Line *line)
{
    end_run(line);
    fputc('\n', line->file);
}

/* ---- Breaking lines ---- */

static bool is_blank(const CornuCell *cell)
{
    return cell->length == 1 && cell->bytes[0] == ' ';
}

/* Where each line starts; `starts` has room for one more than there are cells. The blanks after a
 * word belong to it but need not fit into the line. */
static int break_lines(const CornuStyledText *text, int width, bool fold, int *starts)
{
    int lines = 1, used = 0;
    starts[0] = 0;
    for (int start = 0, end; start < text->count; start = end) {
        end = start;
        while (end < text->count && is_blank(&text->cells[end])) end++;
        if (end == text->count) break;
        while (end < text->count && !is_blank(&text->cells[end])) end++;
        const int length = end - start;
        while (end < text->count && is_blank(&text->cells[end])) end++;

        if (used + length <= width) {
            used += end - start;
        } else if (length > width && fold) {
            for (int at = start; at < end; at += width) {
                if (at > 0) starts[lines++] = at;
                used = end - at < width ? end - at : width;
            }
        } else if (start > 0 && (length > width || used > 0)) {
            starts[lines++] = start;
            used = end - start;
        } else {
            used = end - start;
        }
    }
    return lines;
}

/* The lines of a styled text, each a range of its cells. */
typedef struct {
    const CornuStyledText *text;
    int *starts, count;
} Lines;

static CornuStatus make_lines(const CornuStyledText *text, int width, bool fold, Lines *lines)
{
    *lines = (Lines){ .text = text };
    lines->starts = cornu__allocate((size_t)text->count + 1, sizeof *lines->starts);
    if (!lines->starts) return CORNU_ERR_MEMORY;
    lines->count = break_lines(text, width, fold, lines->starts);
    return CORNU_OK;
}

/* Line i, without trailing blanks beyond `width`. */
static const CornuCell *line_cells(const Lines *lines, int i, int width, int *count)
{
    const int start = lines->starts[i];
    const int end = i + 1 < lines->count ? lines->starts[i + 1] : lines->text->count;
    const CornuCell *cells = &lines->text->cells[start];
    *count = end - start;
    while (*count > width && is_blank(&cells[*count - 1])) --*count;
    return cells;
}

CornuStatus cornu__text_print(const CornuStyledText *text, CornuTerminal terminal, FILE *file)
{
    Lines lines;
    CORNU__TRY(make_lines(text, terminal.columns, true, &lines));
    for (int i = 0; i < lines.count; i++) {
        Line line = { .terminal = terminal, .file = file };
        int count;
        const CornuCell *cells = line_cells(&lines, i, terminal.columns, &count);
        put_cells(&line, cells, count);
        end_line(&line);
    }
    cornu__release(lines.starts);
    return CORNU_OK;
}

/* ---- Tables ---- */

/* Left edge, fill, between columns, right edge. */
typedef struct {
    const char *left, *fill, *between, *right;
} Border;

typedef struct {
    Border top, head, head_rule, body, rule, bottom;
} Box;

static const Box heavy_head = {
    { "┏", "━", "┳", "┓" }, { "┃", " ", "┃", "┃" }, { "┡", "━", "╇", "┩" },
    { "│", " ", "│", "│" }, { "├", "─", "┼", "┤" }, { "└", "─", "┴", "┘" },
};

static const Box ascii = {
    { "+", "-", "-", "+" }, { "|", " ", "|", "|" }, { "|", "-", "+", "|" },
    { "|", " ", "|", "|" }, { "|", "-", "+", "|" }, { "+", "-", "-", "+" },
};

static const Box *box_of(const CornuBoxTable *table)
{
    return table->terminal.utf8 ? &heavy_head : &ascii;
}

static void print_rule(const CornuBoxTable *table, Border border)
{
    Line line = { .terminal = table->terminal, .file = table->file };
    for (int c = 0; c < table->column_count; c++) {
        put_border(&line, c == 0 ? border.left : border.between, 1);
        put_border(&line, border.fill, table->columns[c].width);
    }
    put_border(&line, border.right, 1);
    end_line(&line);
}

/* Line i of a cell: a blank, the text aligned, a blank. */
static void print_cell_line(Line *line, const CornuBoxColumn *column, const Lines *lines, int i,
                            CornuTextKind blank)
{
    const int width = column->width - 2;
    if (i < 0 || i >= lines->count) {
        put_blanks(line, column->width, blank);
        return;
    }
    int count;
    const CornuCell *cells = line_cells(lines, i, width, &count);
    if (column->alignment != CORNU__LEFT)
        while (count > 0 && is_blank(&cells[count - 1])) count--;

    const int rest = count < width ? width - count : 0;
    const int before = column->alignment == CORNU__LEFT  ? 0
                     : column->alignment == CORNU__RIGHT ? rest : rest / 2;
    put_blanks(line, 1, blank);
    end_run(line);
    put_blanks(line, before, blank);
    if (count <= width) {
        put_cells(line, cells, count);
    } else {
        const CornuCell *last = &cells[width - 1];
        put_cells(line, cells, width - 1);
        put_cell(line, line->terminal.utf8 ? (CornuCell){ "…", 3, last->kind }
                                           : (CornuCell){ "~", 1, last->kind });
    }
    put_blanks(line, rest - before, blank);
    end_run(line);
    put_blanks(line, 1, blank);
    end_run(line);
}

/* All lines of a row. Titles are in bold, aligned to the bottom. */
static CornuStatus print_row(const CornuBoxTable *table, const CornuStyledText *texts, bool is_head)
{
    const Border border = is_head ? box_of(table)->head : box_of(table)->body;
    const CornuTextKind blank = is_head ? CORNU__TEXT_BOLD : CORNU__TEXT_PLAIN;
    Lines lines[CORNU__MAX_COLUMNS] = { { 0 } };
    CornuStatus status = CORNU_OK;
    int height = 1;
    for (int c = 0; c < table->column_count && status == CORNU_OK; c++) {
        status = make_lines(&texts[c], table->columns[c].width - 2, false, &lines[c]);
        if (lines[c].count > height) height = lines[c].count;
    }
    for (int i = 0; i < height && status == CORNU_OK; i++) {
        Line line = { .terminal = table->terminal, .file = table->file };
        for (int c = 0; c < table->column_count; c++) {
            const int at = is_head ? i - (height - lines[c].count) : i;
            put_border(&line, c == 0 ? border.left : border.between, 1);
            print_cell_line(&line, &table->columns[c], &lines[c], at, blank);
        }
        put_border(&line, border.right, 1);
        end_line(&line);
    }
    for (int c = 0; c < table->column_count; c++)
        cornu__release(lines[c].starts);
    return status;
}

/* Each column gets its width and two blanks; the excess over `width` is taken from them in equal
 * parts, from left to right, halves rounded to even. */
static void fit_columns(CornuBoxTable *table, int width)
{
    const int count = table->column_count;
    int excess = count + 1 - width;
    for (int c = 0; c < count; c++) {
        table->columns[c].width += 2;
        excess += table->columns[c].width;
    }
    for (int c = 0; c < count && excess > 0; c++) {
        const int part = (int)nearbyint((double)excess / (count - c));
        table->columns[c].width -= part;
        excess -= part;
    }
    for (int c = 0; c < count; c++)
        if (table->columns[c].width < 3) table->columns[c].width = 3;
}

CornuStatus cornu__box_table_begin(CornuBoxTable *table, int width)
{
    CornuStyledText titles[CORNU__MAX_COLUMNS] = { { 0 } };
    CornuStatus status = CORNU_OK;
    table->rows = 0;
    fit_columns(table, width);
    print_rule(table, box_of(table)->top);
    for (int c = 0; c < table->column_count && status == CORNU_OK; c++)
        status = cornu__text_append(&titles[c], CORNU__TEXT_BOLD, "%s", table->columns[c].title);
    if (status == CORNU_OK) status = print_row(table, titles, true);
    if (status == CORNU_OK) print_rule(table, box_of(table)->head_rule);
    for (int c = 0; c < table->column_count; c++)
        cornu__text_free(&titles[c]);
    return status;
}

CornuStatus cornu__box_table_row(CornuBoxTable *table, const CornuStyledText *texts)
{
    if (table->rows++ > 0) print_rule(table, box_of(table)->rule);
    return print_row(table, texts, false);
}

void cornu__box_table_end(CornuBoxTable *table) { print_rule(table, box_of(table)->bottom); }
