/* A model of 8 bits that predicts, and one of floats whose last layer learns, for a controller and
 * for the host: check.sh compares what both print. */
#include <stdio.h>

#include "small.h"
#include "tuned.h"

static tuned_state state;
static union {
    double        aligned;
    unsigned char small[SMALL_SCRATCH_BYTES], predict[TUNED_SCRATCH_BYTES],
                  step[TUNED_STEP_SCRATCH_BYTES];
} scratch;

/* Pictures of two kinds: a thin bar that stands, and a thick one that lies. */
static void draw(float *x, int kind, int at)
{
    for (int i = 0; i < 28 * 28; i++) {
        const int row = i / 28, column = i % 28, along = kind ? row : column;
        x[i] = along >= at && along < at + (kind ? 12 : 4) ? 1.0f : 0.0f;
    }
}

static void predict_small(void)
{
    static float  x[28 * 28];
    static int8_t in[28 * 28];
    int8_t        y[10];
    for (int kind = 0; kind < 4; kind++) {
        draw(x, kind % 2, 5 * kind);
        for (int i = 0; i < 28 * 28; i++) in[i] = x[i] > 0.5f ? 127 : -128;
        small_predict(&scratch, in, y);
        for (int i = 0; i < 10; i++) printf("%d ", y[i]);
        printf("\n");
    }
}

/* How many of ten pictures it knows. */
static int known(void)
{
    static float x[28 * 28];
    float        y[2];
    int          right = 0;
    for (int at = 0; at < 10; at++) {
        draw(x, at % 2, at);
        tuned_predict(&state.weights, &scratch, x, y);
        right += (y[1] > y[0]) == at % 2;
    }
    return right;
}

int main(void)
{
    static float x[28 * 28];
    predict_small();
    tuned_init(&state);
    printf("before: %d of 10\n", known());
    for (int i = 0; i < 200; i++) {
        const int32_t label = i % 2;
        draw(x, label, i % 15);
        tuned_step(&state, &scratch, x, &label);
    }
    printf("after: %d of 10\n", known());
    return 0;
}
