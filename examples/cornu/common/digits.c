#include "digits.h"

#include <stdio.h>

enum { SHOWN = 12, ACROSS = 3 };   /* three fit in 80 columns */

/* ---- Drawing ---- */

/* The 20 by 20 pixels that hold the ink, two rows a line: upper and lower half blocks in greys,
 * or letters of growing weight where there is no colour. */
enum { INK = 20, MARGIN = 4 };

static int pixel(const uint8_t *digit, int row, int column)
{
    return digit[(row + MARGIN) * 28 + column + MARGIN];
}

static void draw_row(const CornuTerminal *screen, const uint8_t *digit, int row, bool wrong)
{
    static const char weights[] = " .:-=+*#%@";
    if (screen->styling != CORNU_256_COLOURS || !screen->utf8) {
        if (wrong && screen->styling >= CORNU_16_COLOURS) fputs("\033[31m", stdout);
        for (int column = 0; column < INK; column++) {
            int mean = (pixel(digit, row, column) + pixel(digit, row + 1, column)) / 2;
            putchar(weights[mean * 9 / 255]);
        }
        if (wrong && screen->styling >= CORNU_16_COLOURS) fputs("\033[0m", stdout);
        return;
    }
    for (int column = 0; column < INK; column++) {
        int shade[2];
        for (int half = 0; half < 2; half++) {
            int value = pixel(digit, row + half, column);
            /* 232 to 255 are greys; 16 + 36 r is red of 6 steps. */
            shade[half] = wrong ? 16 + 36 * (value * 5 / 255) : 232 + value * 23 / 255;
        }
        printf("\033[38;5;%d;48;5;%dm▀", shade[0], shade[1]);
    }
    fputs("\033[0m", stdout);
}

typedef struct {
    int64_t index;
    int     truth, guess;
    float   probability;
} Reading;

static void draw(const CornuTerminal *screen, const uint8_t *digits, const Reading *readings,
                 int count)
{
    const char *bold = screen->styling >= CORNU_BOLD ? "\033[1m" : "";
    const char *end = screen->styling >= CORNU_BOLD ? "\033[0m" : "";
    for (int first = 0; first < count; first += ACROSS) {
        const int last = first + ACROSS < count ? first + ACROSS : count;
        for (int row = 0; row < INK; row += 2) {
            for (int i = first; i < last; i++) {
                const Reading *r = &readings[i];
                fputs(i > first ? "  " : "", stdout);
                draw_row(screen, digits + r->index * 784, row, r->guess != r->truth);
            }
            putchar('\n');
        }
        for (int i = first; i < last; i++) {
            const Reading *r = &readings[i];
            const bool     wrong = r->guess != r->truth;
            char           caption[INK + 1];
            if (wrong) snprintf(caption, sizeof caption, "reads %d, is %d", r->guess, r->truth);
            else snprintf(caption, sizeof caption, "reads %d (%.1f %%)", r->guess,
                          100.0 * r->probability);
            const bool red = wrong && screen->styling >= CORNU_16_COLOURS;
            printf("%s%s%-*s%s", i > first ? "  " : "", red ? "\033[31m" : wrong ? bold : "",
                   INK, caption, red ? "\033[0m" : wrong ? end : "");
        }
        fputs("\n\n", stdout);
    }
}

/* ---- Choosing ---- */

/* Wrong predictions first, by descending confidence; then right ones from all classes. */
static int choose(const float *p, const uint8_t *labels, int64_t count, Reading *chosen,
                  int64_t *wrong)
{
    int found = 0, right = 0;
    *wrong = 0;
    Reading rights[SHOWN];
    for (int64_t i = 0; i < count; i++) {
        const int     best = (int)cornu_predicted_class(p + i * 10, 10);
        const Reading reading = { i, labels[i], best, p[i * 10 + best] };
        if (best != labels[i]) {
            (*wrong)++;
            /* Half of the places are for mistakes, by descending confidence. */
            int at = found < SHOWN / 2 ? found++ : found;
            if (at == SHOWN / 2 && chosen[--at].probability >= reading.probability) continue;
            for (; at > 0 && chosen[at - 1].probability < reading.probability; at--)
                chosen[at] = chosen[at - 1];
            chosen[at] = reading;
        } else if (right < SHOWN && best == right % 10) {
            rights[right++] = reading;
        }
    }
    for (int i = 0; i < right && found < SHOWN; i++) chosen[found++] = rights[i];
    return found;
}

void digits_show(CornuArray predictions, const CornuTrainTest *mnist)
{
    const int64_t       count = mnist->test_x.type.shape.extent[0];
    const CornuTerminal screen = cornu_terminal(stdout);
    Reading             shown[SHOWN];
    int64_t             wrong;
    const int           readings = choose(predictions.data, mnist->test_y.data, count, shown,
                                          &wrong);
    printf("%lld of %lld digits are read wrongly. Some of them, wrong ones first:\n\n",
           (long long)wrong, (long long)count);
    draw(&screen, mnist->test_x.data, shown, readings);
}
