/* Loads a model of digits, reads a picture and prints the digit: MODEL.safetensors PICTURE.png.
 * `make inference` builds it with the library that only predicts. */
#include <stdio.h>
#include <stdlib.h>

#include <cornu/cornu.h>

static int fail(void)
{
    fprintf(stderr, "infer: %s\n", cornu_error_message());
    return 1;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: infer MODEL.safetensors PICTURE.png\n");
        return 2;
    }
    CornuArray  picture;
    uint8_t     pixels[28 * 28];
    float       p[10];
    CornuModel *model = cornu_model_load(arguments[1]);
    if (!model) return fail();
    CornuStatus status = cornu_image_load(arguments[2], 1, &picture);
    if (!status) status = cornu_digit_prepare(picture, pixels);
    if (status) return fail();
    status = cornu_predict_on_batch(model, cornu_array(pixels, CORNU_U8, 1, 28, 28, 1),
                                    cornu_array(p, CORNU_F32, 1, 10));
    if (status) return fail();
    int best = 0;
    for (int digit = 1; digit < 10; digit++)
        if (p[digit] > p[best]) best = digit;
    printf("%d %.9g\n", best, p[best]);
    free(picture.data);
    cornu_model_free(model);
    return 0;
}
