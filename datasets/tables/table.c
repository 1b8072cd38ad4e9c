/* Reading tables from CSV. */
#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../../device/text/print.h"
#include "number_internal.h"
#include "table_internal.h"

enum { UNDECIDED, NUMBERS, WORDS };

/* A field of a line. */
typedef struct {
    char  *text;
    double number;
    bool   is_number;
} Field;

/* A column of the file while it is read. */
typedef struct {
    const char  *name;
    int          kind;
    CornuColumn *to;           /* NULL: not read */
    const CornuColumn *like;
    char       **word;         /* owned: of each row, pointing into the file's text */
    int          value_space, word_space;
    const char  *first;        /* the value that decided the kind */
    int64_t      first_line;
} Reading;

typedef struct {
    const CornuTableConfig *config;
    CornuTable *table;
    char        delimiter;
    char       *at;            /* in the file's text, whose fields are terminated in place */
    const char *limit;         /* the end of the text, after the NUL */
    bool        stops[256];    /* by character: ends a field that is not quoted */
    bool        scans;         /* the delimiter is not a character of numbers */
    int64_t     line;
    Reading    *column;        /* owned */
    Field      *field;         /* owned: one for each column */
    int         columns, space, line_space;
} Reader;

/* "FILE: line 7, column age: …", or without a column. */
static CornuStatus fail(const Reader *reader, CornuStatus status, int64_t line,
                        const Reading *column, const char *format, ...) CORNU__PRINTF(5, 6);

static CornuStatus fail(const Reader *reader, CornuStatus status, int64_t line,
                        const Reading *column, const char *format, ...)
{
    char    text[500];
    va_list arguments;
    va_start(arguments, format);
    cornu__vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    return cornu__fail(status, "%s: line %lld%s%.99s: %s", reader->table->name, (long long)line,
                       column ? ", column " : "", column ? column->name : "", text);
}

/* ---- Fields ---- */

/* The reader's text, `size` bytes and a NUL. */
static void begin_text(Reader *reader, char *text, size_t size)
{
    reader->at = text;
    reader->limit = text + size + 1;
    reader->scans = !strchr("+-.0123456789eE", reader->delimiter);
    reader->stops[(unsigned char)reader->delimiter] = reader->stops['"'] = true;
    reader->stops['\n'] = reader->stops['\r'] = reader->stops[0] = true;
}

/* The length of the line break here: LF, CR LF, or CR alone, as on old Macs; 0 without one. */
static int line_break(const char *at)
{
    return *at == '\n' ? 1 : *at == '\r' ? 1 + (at[1] == '\n') : 0;
}

/* Moves on from `at`, over the line break or the delimiter there. */
static void skip_stop(Reader *reader, char *at)
{
    const int length = line_break(at);
    reader->line += length > 0;
    reader->at = at + (length ? length : *at != '\0');
}

static bool is_blank(const Reader *reader, char c)
{
    return (c == ' ' || c == '\t') && c != reader->delimiter;
}

static CornuStatus quoted_field(Reader *reader, char **field)
{
    const int64_t line = reader->line;
    char         *from = reader->at + 1, *to = from;
    *field = to;
    for (; *from != '"' || from[1] == '"'; from++) {
        if (!*from) return fail(reader, CORNU_ERR_FORMAT, line, NULL, "a quote is not closed");
        if (*from == '"') from++;
        reader->line += *from == '\n' || (*from == '\r' && from[1] != '\n');
        *to++ = *from;
    }
    for (from++; is_blank(reader, *from);) from++;
    *to = '\0';
    reader->at = from;
    if (!*from || line_break(from) || *from == reader->delimiter) return CORNU_OK;
    return fail(reader, CORNU_ERR_FORMAT, reader->line, NULL, "text after a closing quote");
}

/* Reads the next field of a line; *last: whether it is the last one. */
static CornuStatus next_field(Reader *reader, char **field, bool *last)
{
    while (is_blank(reader, *reader->at)) reader->at++;
    char *end = NULL;
    if (*reader->at == '"') {
        CORNU__TRY(quoted_field(reader, field));
    } else {
        *field = reader->at;
        while (!reader->stops[(unsigned char)*reader->at]) reader->at++;
        for (end = reader->at; end > *field && is_blank(reader, end[-1]);) end--;
        if (*reader->at == '"')
            return fail(reader, CORNU_ERR_FORMAT, reader->line, NULL,
                        "a quote within a field; put the field in quotes and double those in it");
    }
    *last = *reader->at != reader->delimiter;
    skip_stop(reader, reader->at);
    if (end) *end = '\0';
    return CORNU_OK;
}

/* Whether the text up to a NUL is a finite decimal number, in any locale. */
static bool is_number(const Reader *reader, const char *text, double *number)
{
    const char *end;
    return cornu__scan_number(text, reader->limit, &end, number) && !*end;
}

/* Reads the next field of a line, and the number that it is, if it is one. */
static CornuStatus next_value(Reader *reader, Field *field, bool *last)
{
    const char *end;
    while (is_blank(reader, *reader->at)) reader->at++;
    *field = (Field){ .text = NULL };
    if (reader->scans &&
        cornu__scan_number(reader->at, reader->limit, &end, &field->number)) {
        char *number_end = reader->at + (end - reader->at), *stop = number_end;
        while (is_blank(reader, *stop)) stop++;
        if (*stop == reader->delimiter || line_break(stop) || !*stop) {
            field->is_number = true;
            field->text = reader->at;
            *last = *stop != reader->delimiter;
            skip_stop(reader, stop);
            *number_end = '\0';
            return CORNU_OK;
        }
    }
    const bool quoted = *reader->at == '"';
    CORNU__TRY(next_field(reader, &field->text, last));
    if (quoted || !reader->scans)
        field->is_number = is_number(reader, field->text, &field->number);
    return CORNU_OK;
}

/* Skips empty lines; returns whether there is another line. */
static bool next_line(Reader *reader)
{
    for (;;) {
        char *end = reader->at;
        while (is_blank(reader, *end)) end++;
        if (!line_break(end)) return *end != '\0';
        skip_stop(reader, end);
    }
}

/* ---- The header ---- */

static bool listed(const char *const *list, const char *text)
{
    while (list && *list)
        if (!strcmp(*list++, text)) return true;
    return false;
}

static CornuStatus read_header(Reader *reader)
{
    bool last = false;
    if (!next_line(reader))
        return cornu__fail(CORNU_ERR_FORMAT, "%s: is empty, expected a line of column names",
                           reader->table->name);
    while (!last) {
        char *name;
        CORNU__TRY(cornu__reserve(&reader->column, &reader->space, reader->columns, 1,
                                  sizeof *reader->column));
        CORNU__TRY(next_field(reader, &name, &last));
        if (!*name) return fail(reader, CORNU_ERR_FORMAT, 1, NULL, "column %d has no name",
                               reader->columns + 1);
        for (int c = 0; c < reader->columns; c++)
            if (!strcmp(reader->column[c].name, name))
                return fail(reader, CORNU_ERR_FORMAT, 1, &reader->column[c], "is listed twice");
        if (reader->columns == CORNU_MAX_TABLE_COLUMNS)
            return fail(reader, CORNU_ERR_FORMAT, 1, NULL, "more than %d columns",
                        CORNU_MAX_TABLE_COLUMNS);
        reader->column[reader->columns++] = (Reading){ .name = name };
    }
    reader->field = cornu__allocate((size_t)reader->columns, sizeof *reader->field);
    return reader->field ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Creates the columns of the table, with their kinds if known. */
static CornuStatus open_columns(Reader *reader)
{
    CornuTable *table = reader->table;
    const CornuTableConfig *config = reader->config;
    table->column = cornu__allocate((size_t)reader->columns, sizeof *table->column);
    if (!table->column) return CORNU_ERR_MEMORY;
    for (int c = 0; c < reader->columns; c++) {
        Reading  *column = &reader->column[c];
        const int same = config->like ? cornu__table_column(config->like, column->name) : 0;
        if (same < 0) continue;
        if (config->like) {
            column->like = &config->like->column[same];
            column->kind = column->like->category_count ? WORDS : NUMBERS;
        } else if (listed(config->categories, column->name)) {
            column->kind = WORDS;
        }
        column->to = &table->column[table->columns++];
        column->to->name = cornu__copy_text(column->name);
        if (!column->to->name) return CORNU_ERR_MEMORY;
    }
    for (const char *const *name = config->like ? NULL : config->categories; name && *name; name++)
        if (cornu_table_find(table, *name) < 0) return cornu_error_status();
    return CORNU_OK;
}

/* ---- Rows ---- */

static bool is_missing(const Reader *reader, const Field *field)
{
    static const char *const usual[] = { "NA", "N/A", "NaN", "nan", "null", "NULL", NULL };
    const char *const       *own = reader->config->missing_values;
    if (field->is_number && !own) return false;
    return !*field->text || listed(own ? own : usual, field->text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The index of a word in the sorted categories, or -1. */
static int category_of(char *word, char *const *category, int count)
{
    char **found = bsearch(&word, category, (size_t)count, sizeof *category, by_text);
    return found ? (int)(found - (char **)category) : -1;
}

/* Reports a value that is not of the column's kind. */
static CornuStatus other_kind(const Reader *reader, const Reading *column, const char *text,
                              int64_t line)
{
    const bool numbers = column->kind == NUMBERS;
    if (!column->first)
        return fail(reader, CORNU_ERR_VALUE, line, column, "\"%.99s\" is not a number, as expected "
                    "from the training data", text);
    return fail(reader, CORNU_ERR_VALUE, line, column, "\"%.99s\" is %s number, but \"%.99s\" on "
                "line %lld is%s; is one of them a missing value, or is the column a category?",
                text, numbers ? "not a" : "a", column->first, (long long)column->first_line,
                numbers ? "" : " not");
}

/* Counts or refuses an unknown category. */
static CornuStatus note_unknown(const Reader *reader, const Reading *column, const char *text,
                                int64_t line)
{
    if (reader->config->unknown == CORNU_UNKNOWN_REFUSED)
        return fail(reader, CORNU_ERR_VALUE, line, column, "\"%.99s\" is not among the %d "
                    "categories of the training data", text,
                    column->like->category_count);
    if (column->to->unknown++) return CORNU_OK;
    column->to->first_unknown = cornu__copy_text(text);
    return column->to->first_unknown ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Appends a value to the column. */
static CornuStatus store(Reader *reader, Reading *column, const Field *field, int64_t line)
{
    const int  row = reader->table->rows;
    double     number = field->number;
    char      *text = field->text;
    const bool numeric = field->is_number;
    if (column->kind == UNDECIDED) {
        column->kind = numeric ? NUMBERS : WORDS;
        column->first = text;
        column->first_line = line;
    }
    if (column->kind == NUMBERS ? !numeric : numeric && column->first)
        return other_kind(reader, column, text, line);
    if (row == column->value_space)
        CORNU__TRY(cornu__reserve(&column->to->value, &column->value_space, row, 1,
                                  sizeof number));
    if (column->kind == WORDS && column->like) {
        number = category_of(text, column->like->category, column->like->category_count);
        if (number < 0.0) CORNU__TRY(note_unknown(reader, column, text, line));
    } else if (column->kind == WORDS) {
        CORNU__TRY(cornu__reserve(&column->word, &column->word_space, row, 1,
                                  sizeof *column->word));
        column->word[row] = text;
    }
    column->to->value[row] = number;   /* a word's index is set once all words are known */
    return CORNU_OK;
}

/* Reads the fields of a line, one for each column. */
static CornuStatus read_fields(Reader *reader)
{
    const int64_t line = reader->line;
    bool          last = false;
    int           count = 0;
    for (; !last; count++) {
        Field  beyond;
        Field *field = count < reader->columns ? &reader->field[count] : &beyond;
        CORNU__TRY(next_value(reader, field, &last));
    }
    if (count == reader->columns) return CORNU_OK;
    return fail(reader, CORNU_ERR_FORMAT, line, NULL, "%d field%s, expected %d as in the first "
                "line", count, count == 1 ? "" : "s", reader->columns);
}

static CornuStatus read_rows(Reader *reader)
{
    CornuTable *table = reader->table;
    while (next_line(reader)) {
        const int64_t line = reader->line;
        const Reading *missing = NULL;
        CORNU__TRY(read_fields(reader));
        for (int c = 0; c < reader->columns && !missing; c++)
            if (reader->column[c].to && is_missing(reader, &reader->field[c]))
                missing = &reader->column[c];
        if (missing && reader->config->missing == CORNU_MISSING_REFUSED)
            return fail(reader, CORNU_ERR_VALUE, line, missing, "the value is missing; .missing = "
                        "CORNU_MISSING_DROPPED drops such rows");
        for (int c = 0; c < reader->columns && !missing; c++)
            if (reader->column[c].to)
                CORNU__TRY(store(reader, &reader->column[c], &reader->field[c], line));
        if (missing) {
            table->dropped++;
            continue;
        }
        CORNU__TRY(cornu__reserve(&table->line, &reader->line_space, table->rows, 1,
                                  sizeof *table->line));
        table->line[table->rows++] = line;
    }
    if (table->rows) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DATA, "%s: no rows%s", table->name,
                       table->dropped ? " without a missing value" : "");
}

/* ---- Categories ---- */

static CornuStatus copy_category(CornuColumn *to, const char *word, int *space)
{
    CORNU__TRY(cornu__reserve(&to->category, space, to->category_count, 1, sizeof *to->category));
    char *copy = cornu__copy_text(word);
    if (!copy) return CORNU_ERR_MEMORY;
    to->category[to->category_count++] = copy;
    return CORNU_OK;
}

/* Sorts the distinct words of a column and sets its values to their indices. */
static CornuStatus number_words(Reading *column, int rows)
{
    CornuColumn *to = column->to;
    int          space = 0;
    char       **sorted = cornu__allocate((size_t)rows, sizeof *sorted);
    if (!sorted) return CORNU_ERR_MEMORY;
    memcpy(sorted, column->word, (size_t)rows * sizeof *sorted);
    qsort(sorted, (size_t)rows, sizeof *sorted, by_text);
    CornuStatus status = CORNU_OK;
    for (int row = 0; row < rows && !status; row++)
        if (row == 0 || strcmp(sorted[row - 1], sorted[row]) != 0)
            status = copy_category(to, sorted[row], &space);
    cornu__release(sorted);
    for (int row = 0; row < rows && !status; row++)
        to->value[row] = category_of(column->word[row], to->category, to->category_count);
    return status;
}

static CornuStatus finish_columns(Reader *reader)
{
    for (int c = 0; c < reader->columns; c++) {
        Reading *column = &reader->column[c];
        if (column->word) CORNU__TRY(number_words(column, reader->table->rows));
        int space = 0;
        for (int i = 0; column->to && column->like && i < column->like->category_count; i++)
            CORNU__TRY(copy_category(column->to, column->like->category[i], &space));
    }
    return CORNU_OK;
}

/* ---- Schemas ---- */

/* Reads a line: a name, followed by its sorted categories. */
static CornuStatus read_schema_line(Reader *reader, int *columns_space)
{
    CornuTable   *table = reader->table;
    const int64_t line = reader->line;
    char         *text;
    bool          last;
    int           space = 0;
    CORNU__TRY(cornu__reserve(&table->column, columns_space, table->columns, 1,
                              sizeof *table->column));
    CORNU__TRY(next_field(reader, &text, &last));
    if (!*text || cornu__table_column(table, text) >= 0 ||
        table->columns == CORNU_MAX_TABLE_COLUMNS)
        return fail(reader, CORNU_ERR_FORMAT, line, NULL, "column \"%.99s\" is %s", text,
                    !*text ? "without a name" : table->columns == CORNU_MAX_TABLE_COLUMNS
                                                    ? "beyond the maximum" : "there twice");
    CornuColumn *column = &table->column[table->columns++];
    *column = (CornuColumn){ .name = cornu__copy_text(text) };
    if (!column->name) return CORNU_ERR_MEMORY;
    while (!last) {
        CORNU__TRY(next_field(reader, &text, &last));
        const int count = column->category_count;
        if (count && strcmp(column->category[count - 1], text) >= 0)
            return fail(reader, CORNU_ERR_FORMAT, line, NULL, "categories are not sorted");
        CORNU__TRY(copy_category(column, text, &space));
    }
    return CORNU_OK;
}

CornuTable *cornu_table_schema_parse(const char *schema)
{
    if (cornu__refused()) return NULL;
    CornuTable *table = cornu__allocate(1, sizeof *table);
    char       *text = schema ? cornu__copy_text(schema) : NULL;
    if (table) table->name = cornu__copy_text("the table's schema");
    Reader      reader = { .table = table, .line = 1, .delimiter = ',' };
    int         space = 0;
    CornuStatus status = !schema ? cornu__fail(CORNU_ERR_ARGUMENT, "table: the schema is NULL")
                       : !text || !table || !table->name ? CORNU_ERR_MEMORY : CORNU_OK;
    if (!status) begin_text(&reader, text, strlen(text));
    while (!status && next_line(&reader)) status = read_schema_line(&reader, &space);
    if (!status && table->columns == 0)
        status = cornu__fail(CORNU_ERR_FORMAT, "%s: has no columns", table->name);
    cornu__release(text);
    if (!status) return cornu__loaded(table);
    cornu_table_free(table);
    return cornu__loaded(NULL);
}

/* ---- Files ---- */

/* Reads from a NUL-terminated text, which it modifies. */
static CornuStatus read_table(Reader *reader, char *text, size_t size)
{
    if (reader->delimiter == '"' || reader->delimiter == '\n' || reader->delimiter == '\r')
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .delimiter is character %d, expected a "
                           "separator such as a comma", reader->table->name, reader->delimiter);
    if (memchr(text, '\0', size))
        return cornu__fail(CORNU_ERR_FORMAT, "%s: contains NUL bytes, expected text",
                           reader->table->name);
    begin_text(reader, text, size);
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) reader->at += 3;
    CORNU__TRY(read_header(reader));
    CORNU__TRY(open_columns(reader));
    CORNU__TRY(read_rows(reader));
    return finish_columns(reader);
}

/* Takes ownership of the text. */
static CornuTable *parse(char *text, size_t size, const char *name,
                         const CornuTableConfig *config)
{
    CornuTable *table = cornu__allocate(1, sizeof *table);
    if (table) table->name = cornu__copy_text(name);
    Reader reader = { .config = config, .table = table, .line = 1,
                      .delimiter = config->delimiter ? config->delimiter : ',' };
    CornuStatus status = table && table->name ? read_table(&reader, text, size)
                                              : CORNU_ERR_MEMORY;
    for (int c = 0; c < reader.columns; c++) cornu__release(reader.column[c].word);
    cornu__release(reader.column);
    cornu__release(reader.field);
    cornu__release(text);
    if (!status) {
        cornu__log(CORNU_LOG_INFO, "%s: %d rows of %d columns", name, table->rows, table->columns);
        return table;
    }
    cornu_table_free(table);
    return NULL;
}

CornuTable *cornu_table_parse(const char *bytes, size_t size, const char *name,
                              const CornuTableConfig *config)
{
    CORNU__NEED_TO_LOAD(bytes);
    CORNU__NEED_TO_LOAD(config);
    if (cornu__refused()) return NULL;
    char *text = cornu__allocate(size + 1, 1);
    if (text && size) memcpy(text, bytes, size);
    return cornu__loaded(text ? parse(text, size, name, config) : NULL);
}

/* Reads the file and terminates it with a NUL. */
static CornuStatus read_file(const char *path, char **text, size_t *size)
{
    FILE *file;
    CORNU__TRY(cornu__open_to_read(path, &file));
    CornuStatus status = CORNU_OK;
    int         space = 0, used = 0;
    for (size_t got = 1; got && !status;) {
        status = cornu__reserve(text, &space, used, (1 << 16) + 1, 1);
        if (status) break;
        got = fread(*text + used, 1, 1 << 16, file);
        used += (int)got;
        if (used > CORNU_MAX_TABLE_BYTES)
            status = cornu__fail(CORNU_ERR_FORMAT, "%s: is larger than %d bytes", path,
                                 CORNU_MAX_TABLE_BYTES);
    }
    if (!status && ferror(file))
        status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    fclose(file);
    if (!status) (*text)[used] = '\0';
    *size = (size_t)used;
    return status;
}

CornuTable *cornu_table_load_from(const CornuTableConfig *config)
{
    char  *text = NULL;
    size_t size = 0;
    if (cornu__refused()) return NULL;
    const CornuStatus status = !config->file
        ? cornu__fail(CORNU_ERR_ARGUMENT, "table: .file is not given")
        : read_file(config->file, &text, &size);
    if (!status) return cornu__loaded(parse(text, size, config->file, config));
    cornu__release(text);
    return cornu__loaded(NULL);
}
