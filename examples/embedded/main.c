/*
 * A loop as machines without an operating system have it: a picture comes, the network says which
 * digit it is, and where somebody corrects it, it learns. Nothing is allocated. board.h has what is
 * of the board.
 *
 *     cornu compile digits.keras -o digits.c --train --batch-size 1 --optimizer sgd
 */
#include "board.h"
#include "digits.h"

#define LARGER(a, b) ((a) > (b) ? (a) : (b))

static digits_state state;             /* weights, slots of the optimizer, metrics */
static union {
    double        aligned;
    unsigned char bytes[LARGER(DIGITS_SCRATCH_BYTES, DIGITS_STEP_SCRATCH_BYTES)];
} scratch;
static unsigned char saved[DIGITS_WEIGHTS_BYTES];

int main(void)
{
    static float x[28 * 28], y[10];
    int32_t      label;

    digits_init(&state);
    if (board_load(saved, sizeof saved)) digits_load(&state, saved);
    while (board_picture(x)) {
        int digit = 0;
        digits_predict(&state.weights, &scratch, x, y);
        for (int i = 1; i < 10; i++)
            if (y[i] > y[digit]) digit = i;
        board_show(digit, y[digit]);
        if (!board_correction(&label)) continue;
        digits_step(&state, &scratch, x, &label);
        digits_save(&state, saved);
        board_save(saved, sizeof saved);
    }
    return 0;
}
