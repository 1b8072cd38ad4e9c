/* cornu summary MODEL: its layers as Keras prints them, then inputs and outputs. */
#include <locale.h>
#include <stdio.h>

#include "common/session.h"
#include "commands.h"
#include "common/subject.h"

static CornuStatus print(CornuModel *model)
{
    CornuText text;
    if (cornu_summary(model)) return cornu_error_status();
    for (int i = 0; i < cornu_model_input_count(model); i++) {
        const CornuType type = cornu_symbol_type(cornu_model_input(model, i));
        printf("Input %d: %s %s\n", i, cornu_model_input_name(model, i),
               cornu_type_print(&text, type));
    }
    for (int i = 0; i < cornu_model_output_count(model); i++) {
        const CornuType type = cornu_symbol_type(cornu_model_output(model, i));
        printf("Output %d: %s %s\n", i, cornu_model_output_name(model, i),
               cornu_type_print(&text, type));
    }
    if (cornu_model_batch_size(model) > 0)
        printf("In batches of %lld rows\n", (long long)cornu_model_batch_size(model));
    return CORNU_OK;
}

int command_summary(int argc, char **argv)
{
    Options       options = { .device = "cpu" };
    const Program program = { .name = "cornu summary", .arguments = "MODEL", .least_arguments = 1,
                              .purpose = "Prints the layers of a model, its inputs and outputs." };
    const int     usage = options_parse(&options, &program, argc, argv);
    Subject       subject;
    if (usage >= 0) return usage;
    setlocale(LC_CTYPE, "");
    CornuStatus status = subject_find(&subject, options.arguments[0]);
    CornuModel *model = status ? NULL : subject_model(&subject);
    if (!status) status = model ? print(model) : cornu_error_status();
    cornu_model_free(model);
    return session_report("cornu summary", status);
}
