/* cornu convert FROM TO: the suffix of TO chooses the format. */
#include "common/session.h"
#include "commands.h"
#include "common/subject.h"

int command_convert(int argc, char **argv)
{
    Options       options = { .device = "cpu" };
    int64_t       opset = 0;
    const Option  extra[] = {
        { "opset", OPTION_WHOLE, &opset, "N", "of an .onnx file; 18 unless given", 13, 27, NULL },
        OPTION_END,
    };
    const Program program = { .name = "cornu convert",
                              .extra = extra,
                              .arguments = "MODEL FILE",
                              .least_arguments = 2,
                              .purpose =
                                  "Writes a model as a .safetensors, .keras, .onnx or .tflite "
                                  "file." };
    const int     usage = options_parse(&options, &program, argc, argv);
    Subject       subject;
    if (usage >= 0) return usage;
    const char *to = options.arguments[1];
    CornuStatus status = subject_find(&subject, options.arguments[0]);
    if (!status) status = cornu_model_save_check(to);
    CornuModel *model = status ? NULL : subject_model(&subject);
    if (!status && !model) status = cornu_error_status();
    if (!status)
        status = opset ? cornu_model_export(model, to, .opset_version = (int)opset)
                       : cornu_model_save(model, to);
    cornu_model_free(model);
    return session_report("cornu convert", status);
}
