/* Rows of a table, from memory or, of a table on disk, from its file, in any order. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "../../device/memory_internal.h"
#include "table_internal.h"

/* ---- Marks ---- */

/* At most so many marks, of 16 bytes, are in memory: the interval doubles when they are full. */
enum { MOST_MARKS = 1 << 19, FIRST_INTERVAL = 16 };

static CornuStatus add_mark(CornuTable *table, CornuTableMark mark)
{
    int space = (int)table->marks;
    if ((table->marks & (table->marks - 1)) == 0) {   /* a power of two is full */
        CORNU__TRY(cornu__reserve(&table->mark, &space, space, table->marks ? space : 1,
                                  sizeof *table->mark));
    }
    table->mark[table->marks++] = mark;
    return CORNU_OK;
}

CornuStatus cornu__table_mark(CornuTable *table, int64_t row, CornuTableMark mark)
{
    if (!table->interval) table->interval = FIRST_INTERVAL;
    if (row % table->interval) return CORNU_OK;
    if (table->marks == MOST_MARKS) {
        for (int64_t i = 0; i < MOST_MARKS / 2; i++) table->mark[i] = table->mark[2 * i];
        table->marks = MOST_MARKS / 2;
        table->interval *= 2;
        if (row % table->interval) return CORNU_OK;
    }
    return add_mark(table, mark);
}

CornuStatus cornu__table_mark_end(CornuTable *table, CornuTableMark mark)
{
    CORNU__TRY(add_mark(table, mark));
    table->marks--;
    return CORNU_OK;
}

/* ---- Reading ---- */

/* Of another machine's file each request finds that out. */
int64_t cornu__table_changed(const CornuInput *input)
{
    struct stat about = { 0 };
    if (input->descriptor < 0 || fstat(input->descriptor, &about)) return 0;
    return about.st_size != input->size
               ? -1 : (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec;
}

static CornuStatus check_unchanged(const CornuTable *table)
{
    if (cornu__table_changed(&table->input) == table->changed) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: has changed since its rows were counted", table->name);
}

CornuStatus cornu__table_rows_open(CornuTableRows *rows, const CornuTable *table)
{
    *rows = (CornuTableRows){ .table = table, .next = -1 };
    rows->value = cornu__allocate((size_t)table->columns, sizeof *rows->value);
    if (!rows->value) return CORNU_ERR_MEMORY;
    if (!table->on_disk) return CORNU_OK;
    CORNU__TRY(check_unchanged(table));
    rows->text.name = table->name;
    rows->text.delimiter = table->delimiter;
    rows->text.input = &table->input;
    rows->text.size = table->input.size;
    rows->field = cornu__allocate((size_t)table->fields, sizeof *rows->field);
    return rows->field ? cornu__table_text_open(&rows->text) : CORNU_ERR_MEMORY;
}

void cornu__table_rows_close(CornuTableRows *rows)
{
    cornu__release(rows->value);
    cornu__release(rows->field);
    cornu__table_text_close(&rows->text);
    *rows = (CornuTableRows){ .next = -1 };
}

/* The value of a field as the scan saw it: the file is the same. */
static CornuStatus read_value(CornuTableRows *rows, int field, int64_t line)
{
    const CornuTable  *table = rows->table;
    const int          c = table->field[field];
    const CornuField  *from = &rows->field[field];
    const CornuColumn *column = &table->column[c];
    const bool         missing = cornu__table_missing(from, table->missing_values);
    if (column->category_count)
        rows->value[c] = missing ? -1.0 : cornu__category_of(from->text, column->category,
                                                             column->category_count);
    else
        rows->value[c] = missing ? (double)NAN : from->number;
    if (missing || column->category_count || from->is_number) return CORNU_OK;
    return cornu__table_text_fail(&rows->text, CORNU_ERR_VALUE, line, column->name, "\"%.99s\" is "
                                  "not a number; the file has changed", from->text);
}

/* Whether the row that was read is one of the table's. */
static bool is_kept(const CornuTableRows *rows)
{
    const CornuTable *table = rows->table;
    for (int i = 0; i < table->fields && table->missing == CORNU_MISSING_DROPPED; i++)
        if (table->field[i] >= 0 && cornu__table_missing(&rows->field[i], table->missing_values))
            return false;
    return true;
}

static CornuStatus read_line(CornuTableRows *rows, bool *kept)
{
    bool more = false;
    CORNU__TRY(cornu__table_text_line(&rows->text, &more));
    const int64_t line = rows->text.line;
    if (!more) return check_unchanged(rows->table) ? CORNU_ERR_FILE
        : cornu__table_text_fail(&rows->text, CORNU_ERR_FILE, line, NULL, "the file has ended");
    CORNU__TRY(cornu__table_fields(&rows->text, rows->field, rows->table->fields));
    *kept = is_kept(rows);
    for (int i = 0; i < rows->table->fields && *kept; i++)
        if (rows->table->field[i] >= 0) CORNU__TRY(read_value(rows, i, line));
    return CORNU_OK;
}

/* Goes to a row from the mark before it, unless that is the next one anyway. */
static CornuStatus go_to(CornuTableRows *rows, int64_t row)
{
    const CornuTable     *table = rows->table;
    const CornuTableMark *mark = &table->mark[row / table->interval];
    if (row == rows->next) return CORNU_OK;
    /* With the byte after it, as a CR may be half of a line break. */
    const int64_t bytes = mark[1].byte - mark->byte + 1;
    rows->next = row - row % table->interval;
    cornu__table_text_seek(&rows->text, mark->byte, mark->line,
                           bytes < CORNU_TABLE_CHUNK ? (size_t)bytes : CORNU_TABLE_CHUNK);
    while (rows->next < row) {
        bool more, kept = true;
        if (table->dropped) {
            CORNU__TRY(read_line(rows, &kept));
        } else {
            CORNU__TRY(cornu__table_text_line(&rows->text, &more));
            cornu__table_text_skip(&rows->text);
        }
        rows->next += kept;
    }
    return CORNU_OK;
}

CornuStatus cornu__table_row(CornuTableRows *rows, int64_t row)
{
    const CornuTable *table = rows->table;
    if (!table->on_disk) {
        for (int c = 0; c < table->columns; c++) rows->value[c] = table->column[c].value[row];
        return CORNU_OK;
    }
    const int64_t sought = row;
    CornuStatus   status = go_to(rows, sought);
    for (bool kept = false; !kept && !status;) status = read_line(rows, &kept);
    rows->next = status ? -1 : sought + 1;
    return status;
}

int64_t cornu_table_line(const CornuTable *table, int64_t row)
{
    if (!table || row < 0 || row >= table->rows) return 0;
    if (!table->on_disk) return table->line[row];
    CornuTableRows rows;
    int64_t        line = 0;
    bool           more;
    if (!cornu__table_rows_open(&rows, table) && !go_to(&rows, row)) {
        bool kept = false;
        while (!kept) {
            if (cornu__table_text_line(&rows.text, &more) || !more) break;
            line = rows.text.line;
            if (read_line(&rows, &kept)) break;
        }
    }
    cornu__table_rows_close(&rows);
    return line;
}
