/* MovieLens' ratings.csv: one pass checks and counts, a second one fills. The file is read, not
 * mapped: one that another program shortens would end the process. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "clicks_internal.h"

enum { MOST_ID = 100000000, HOURS = 24, DAY_S = 86400, FIRST_DAY = 3 /* Thursday, from Monday */ };

static const char header[] = "userId,movieId,rating,timestamp";

/* Bytes of the file that are there at a time, and how many, at least, from a line's start on. */
enum { BYTES = 1 << 16, MOST_LINE = 1 << 10 };

typedef struct {
    const char *name;
    FILE       *file;
    char        text[BYTES];
    int64_t     line;         /* that is read, from 1 */
    const char *start, *at;   /* of the line, and in it */
    const char *end;          /* of the bytes that are there */
} Reader;

typedef struct {
    int64_t user, item, time;
    double  rating;
} Rating;

static CornuStatus broken(const Reader *r, const char *expected)
{
    char   shown[24];
    size_t length = 0;
    while (r->at + length < r->end && length < sizeof shown - 1 && r->at[length] != '\n' &&
           r->at[length] != '\r') {
        shown[length] = r->at[length] >= 32 && r->at[length] < 127 ? r->at[length] : '?';
        length++;
    }
    shown[length] = '\0';
    return cornu__fail(CORNU_ERR_DATA, "%s: line %lld, column %lld: \"%s\", expected %s", r->name,
                       (long long)r->line, (long long)(r->at - r->start) + 1, shown, expected);
}

/* Digits up to `most`, which is what is expected. */
static CornuStatus read_whole(Reader *r, int64_t most, const char *expected, int64_t *number)
{
    const char *begin = r->at;
    int64_t     value = 0;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && value <= most)
        value = 10 * value + (*r->at++ - '0');
    if (r->at > begin && value <= most) {
        *number = value;
        return CORNU_OK;
    }
    r->at = begin;
    return broken(r, expected);
}

/* "4", "3.5" */
static CornuStatus read_rating(Reader *r, double *rating)
{
    const char *begin = r->at;
    double      value = 0.0, unit = 1.0;
    int         digits = 0;
    for (bool fraction = false; r->at < r->end && r->at - begin < 16; r->at++) {
        if (*r->at == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (*r->at < '0' || *r->at > '9') break;
        if (fraction) unit /= 10.0;
        value = fraction ? value + unit * (*r->at - '0') : 10.0 * value + (*r->at - '0');
        digits++;
    }
    if (digits > 0 && value <= 1e6) {
        *rating = value;
        return CORNU_OK;
    }
    r->at = begin;
    return broken(r, "a rating, such as 3.5");
}

static CornuStatus expect_comma(Reader *r)
{
    if (r->at < r->end && *r->at == ',') {
        r->at++;
        return CORNU_OK;
    }
    return broken(r, "a comma, and four fields: user, item, rating, time");
}

/* Reads on, if less than a line may be there. */
static CornuStatus fill_lines(Reader *r)
{
    const size_t left = (size_t)(r->end - r->at);
    if (left >= MOST_LINE || feof(r->file)) return CORNU_OK;
    memmove(r->text, r->at, left);
    r->start = r->at = r->text;
    r->end = r->text + left + fread(r->text + left, 1, BYTES - left, r->file);
    if (!ferror(r->file)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", r->name, strerror(errno));
}

/* LF, CR LF, CR alone, as on old Macs, or the end of the file. */
static CornuStatus end_line(Reader *r)
{
    const char *begin = r->at;
    if (r->at < r->end && *r->at == '\r') r->at++;
    if (r->at < r->end && *r->at == '\n') r->at++;
    if (r->at == begin && r->at < r->end)
        return broken(r, "the end of the line after four fields");
    r->start = r->at;
    r->line++;
    return fill_lines(r);
}

static CornuStatus read_rating_line(Reader *r, Rating *rating)
{
    static const char ids[] = "a number from 0 to 100000000";
    CORNU__TRY(read_whole(r, MOST_ID, ids, &rating->user));
    CORNU__TRY(expect_comma(r));
    CORNU__TRY(read_whole(r, MOST_ID, ids, &rating->item));
    CORNU__TRY(expect_comma(r));
    CORNU__TRY(read_rating(r, &rating->rating));
    CORNU__TRY(expect_comma(r));
    CORNU__TRY(read_whole(r, INT64_C(1) << 40, "a time in seconds since 1970", &rating->time));
    return end_line(r);
}

static CornuStatus begin_ratings(Reader *r)
{
    rewind(r->file);
    r->at = r->start = r->end = r->text;
    r->line = 1;
    CORNU__TRY(fill_lines(r));
    const size_t length = sizeof header - 1;
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, header, length) != 0)
        return broken(r, "userId,movieId,rating,timestamp");
    r->at += length;
    return end_line(r);
}

static bool ends(const Reader *r, int64_t row, int64_t limit)
{
    return r->at == r->end || (limit && row >= limit);
}

static CornuStatus count(Reader *r, const CornuRatingsConfig *config, CornuClicks *clicks,
                         int64_t time[2])
{
    Rating rating;
    CORNU__TRY(begin_ratings(r));
    for (int64_t row = 0; !ends(r, row, config->limit); row++) {
        CORNU__TRY(read_rating_line(r, &rating));
        (*(cornu__clicks_tests(config->seed, row) ? &clicks->test_rows : &clicks->train_rows))++;
        const int64_t ids[2] = { rating.user, rating.item };
        for (int f = 0; f < 2; f++)
            if (ids[f] >= clicks->vocabulary[f]) clicks->vocabulary[f] = ids[f] + 1;
        if (row == 0 || rating.time < time[0]) time[0] = rating.time;
        if (row == 0 || rating.time > time[1]) time[1] = rating.time;
    }
    return CORNU_OK;
}

static CornuClick click_of(const Rating *rating, double threshold, const int64_t time[2])
{
    const double  span = (double)(time[1] - time[0]), turn = 2.0 * acos(-1.0);
    const double  of_day = (double)(rating->time % DAY_S) / DAY_S;
    const int64_t day = (rating->time / DAY_S + FIRST_DAY) % 7;
    return (CornuClick){
        .ids = { (int32_t)rating->user, (int32_t)rating->item,
                 (int32_t)(day * HOURS + rating->time % DAY_S / (DAY_S / HOURS)) },
        .numbers = { span > 0.0 ? (float)((double)(rating->time - time[0]) / span) : 0.0f,
                     (float)sin(turn * of_day), (float)cos(turn * of_day), day >= 5 },
        .click = rating->rating >= threshold };
}

/* Whether a rating of the second pass is one that the first one can have counted. */
static bool fits(const Rating *rating, int part, int64_t row, const CornuClicks *clicks,
                 const int64_t time[2])
{
    return row < (part ? clicks->test_rows : clicks->train_rows) &&
           rating->user < clicks->vocabulary[0] && rating->item < clicks->vocabulary[1] &&
           rating->time >= time[0] && rating->time <= time[1];
}

static CornuStatus fill_rows(Reader *r, const CornuRatingsConfig *config, CornuClicks *clicks,
                             const int64_t time[2])
{
    const double threshold = config->threshold > 0.0 ? config->threshold : 4.0;
    int64_t      next[2] = { 0, 0 };
    bool         same = true;
    CORNU__TRY(begin_ratings(r));
    for (int64_t row = 0; same && !ends(r, row, config->limit); row++) {
        const int part = cornu__clicks_tests(config->seed, row);
        Rating    rating;
        CORNU__TRY(read_rating_line(r, &rating));
        same = fits(&rating, part, next[part], clicks, time);
        const CornuClick click = click_of(&rating, threshold, time);
        if (same) cornu__clicks_set(clicks, part, next[part]++, &click);
    }
    if (!same || next[0] != clicks->train_rows || next[1] != clicks->test_rows)
        return cornu__fail(CORNU_ERR_DATA, "%s: line %lld: the file changed while it was read",
                           r->name, (long long)r->line);
    snprintf(clicks->description, sizeof clicks->description, "%lld ratings of users below %lld "
             "and items below %lld, clicks are those from %g on",
             (long long)(clicks->train_rows + clicks->test_rows),
             (long long)clicks->vocabulary[0], (long long)clicks->vocabulary[1], threshold);
    return CORNU_OK;
}

static CornuStatus load_ratings(Reader *r, const CornuRatingsConfig *config, CornuClicks *clicks)
{
    int64_t time[2] = { 0, 0 };
    CORNU__TRY(cornu__open_to_read(config->file, &r->file));
    r->name = config->file;
    CORNU__TRY(count(r, config, clicks, time));
    CORNU__TRY(cornu__fail_prefix(cornu__clicks_map(clicks), config->file));
    CORNU__TRY(fill_rows(r, config, clicks, time));
    return cornu__clicks_finish(clicks);
}

CornuClicks *cornu_ratings_load_from(const CornuRatingsConfig *config)
{
    if (!config->file) return cornu__fail_null(CORNU_ERR_ARGUMENT, "no .file of ratings given");
    Reader      *r = cornu__allocate(1, sizeof *r);
    CornuClicks *clicks = cornu__allocate(1, sizeof *clicks);
    if (clicks)
        *clicks = (CornuClicks){ .names = { "user", "item", "hour" },
                                 .vocabulary = { 0, 0, 7 * HOURS }, .features = 3,
                                 .numbers = CORNU_CLICK_NUMBERS, .best_auc = NAN };
    const CornuStatus status = clicks && r ? load_ratings(r, config, clicks) : CORNU_ERR_MEMORY;
    if (r && r->file) fclose(r->file);
    cornu__release(r);
    if (!status) return clicks;
    cornu_clicks_free(clicks);
    return cornu__null();
}
