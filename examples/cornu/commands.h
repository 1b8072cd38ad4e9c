/*
 * The commands of cornu. Each takes its own name and flags as main does, argv[0] being
 * "cornu NAME", and returns the exit status.
 */
#ifndef CORNU_EXAMPLES_COMMANDS_H
#define CORNU_EXAMPLES_COMMANDS_H

#define COMMAND(name, purpose) int command_##name(int argc, char **argv);
#include "commands.def"
#undef COMMAND

#endif
