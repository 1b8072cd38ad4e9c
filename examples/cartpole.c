/*
 * Reinforcement learning: a pole on a cart, to be balanced by pushes to the left or to the right. A
 * network gives the probabilities of both. After each episode its actions become more probable, or
 * less, by what followed them: a step of training on all of them, with sample weights. Ends when
 * the pole has stood for 475 of 500 steps in the mean of the last 100 episodes.
 * 300 episodes, in less than a second on one core (AMD EPYC, Zen 4).
 * Sources: Williams, "Simple statistical gradient-following algorithms for connectionist
 * reinforcement learning", 1992; the physics are those of Gymnasium's CartPole-v1.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cornu/cornu.h>

enum { STEPS = 500, EPISODES = 3000, LAST = 100 };

static double between(double low, double high) { return low + (high - low) * rand() / RAND_MAX; }

/* 0.02 seconds: position and speed of the cart, angle and speed of the pole. Whether it stands. */
static bool push(double s[4], int right)
{
    const double cosine = cos(s[2]), sine = sin(s[2]);
    const double pushed = ((right ? 10.0 : -10.0) + 0.05 * s[3] * s[3] * sine) / 1.1;
    const double angular = (9.8 * sine - cosine * pushed) /
                           (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1));
    s[0] += 0.02 * s[1];
    s[1] += 0.02 * (pushed - 0.05 * angular * cosine / 1.1);
    s[2] += 0.02 * s[3];
    s[3] += 0.02 * angular;
    return fabs(s[0]) <= 2.4 && fabs(s[2]) <= 0.2095;
}

/* How good each step was: the discounted rewards from there on, normalized. */
static void weigh(float *weight, int count)
{
    double later = 0.0, mean = 0.0, square = 0.0;
    for (int i = count - 1; i >= 0; i--) {
        weight[i] = (float)(later = 1.0 + 0.99 * later);
        mean += later / count, square += later * later / count;
    }
    for (int i = 0; i < STEPS; i++)
        weight[i] = i < count ? (float)((weight[i] - mean) / sqrt(square - mean * mean + 1e-6))
                              : 0.0f;
}

int main(void)
{
    static float   x[STEPS][4], weight[STEPS];
    static uint8_t y[STEPS];
    CornuDevice   *device = cornu_device_open("cpu", .threads = 1);
    CornuModel    *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, cornu_dense(64, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01), .device = device,
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    cornu_summary(model);

    double mean = 0.0;
    int    lasted[LAST] = { 0 }, episode = 0;
    for (; episode < EPISODES && mean < 475.0; episode++) {
        double state[4];
        float  p[2];
        int    count = 0;
        bool   stands = true;
        for (int i = 0; i < 4; i++) state[i] = between(-0.05, 0.05);
        for (; stands && count < STEPS; count++) {
            for (int i = 0; i < 4; i++) x[count][i] = (float)state[i];
            if (cornu_predict_on_batch(model, cornu_array(x[count], CORNU_F32, 1, 4),
                                       cornu_array(p, CORNU_F32, 1, 2)))
                return fprintf(stderr, "%s\n", cornu_error_message()), 1;
            y[count] = between(0.0, 1.0) < (double)p[1];
            stands = push(state, y[count]);
        }
        weigh(weight, count);
        if (cornu_train_on_batch(model, cornu_array(x, CORNU_F32, STEPS, 4),
                                 cornu_array(y, CORNU_U8, STEPS),
                                 .sample_weight = cornu_array(weight, CORNU_F32, STEPS)))
            return fprintf(stderr, "%s\n", cornu_error_message()), 1;
        mean += (double)(count - lasted[episode % LAST]) / LAST;
        lasted[episode % LAST] = count;
        if (episode % 50 == 49) printf("Episode %d: mean return %.1f\n", episode + 1, mean);
    }
    printf("%s after %d episodes\n", mean >= 475.0 ? "Solved" : "Not solved", episode);
    cornu_model_free(model);
    cornu_device_close(device);
}
