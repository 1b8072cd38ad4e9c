/* What XLA says of a program that it compiled. */
#ifndef CORNU_DEVICE_PJRT_FIGURES_H
#define CORNU_DEVICE_PJRT_FIGURES_H

#include "../device.h"
#include "plugin.h"

/* Fills what the plugin knows. */
void cornu__pjrt_read_memory(const CornuPjrtPlugin *plugin, PjrtExecutable *executable,
                             CornuCompiledFigures *figures);
void cornu__pjrt_read_figures(const CornuPjrtPlugin *plugin, PjrtExecutable *executable,
                              CornuCompiledFigures *figures);

#endif
