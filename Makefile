# Cornu: `make` builds build/libcornu.{a,so} and every program as build/NAME. Everything generated
# stays below build/. A new file needs no edit here: folders are searched, and one rule per kind of
# file says how it is built.
#
#   make -j1                          one command at a time; else as many as there are processors
#   make CC=clang                     a changed compiler or flag rebuilds everything;
#   make CC=clang BUILD=build/clang   or keep both
#   make SANITIZE=address,undefined   in a folder of its own; likewise SANITIZE=thread
#   make HDF5=                        without libhdf5's header, which .keras and .h5 files need
#   make MPI=                         without plugins for libraries of MPI
#   make MICROHTTPD=                  without libmicrohttpd, which cornu serve and dashboards need
#   make CROSS=PREFIX- SYSROOT=DIR    with PREFIX-gcc and its binutils, and the libraries in DIR
#   make V=1                          shows whole commands
#   make test T=idx                   the test programs whose path contains "idx"; make check: the rest
#   make deb                          Debian packages of all that; see .packaging/deb.mk
#   make inference                    build/libcornu-inference.a, which loads and predicts only
#   make install PREFIX=/opt/cornu DESTDIR=...    and uninstall, with the same
#   make wheel                        the Python package with the library, for pip
#
# The parts of it lie beside what they are about:
#
#   device/host/isa/isa.mk       instruction sets    tests/tests.mk       test, check-..., bench
#   device/cpu/blis.mk           BLIS' object        tests/fuzz/fuzz.mk   fuzz
#   device/processes/mpi.mk      plugins for MPI     tests/lint.mk        lint, format
#   nn/formats/hdf5.mk           libhdf5             .packages.mk         what deps installs
#   nn/pages/pages.mk            parts of pages
#   nn/python/wheel.mk           wheel               nn/prediction/inference.mk   inference
#   examples/cornu/install.mk    install, manual pages, docs
#   nn/pages/dashboard/microhttpd.mk                 libmicrohttpd

CFLAGS  ?= -O2 -g
CROSS    =
SYSROOT  =
SANITIZE =
comma   := ,
BUILD    = build$(if $(SANITIZE),/sanitize-$(subst $(comma),-,$(SANITIZE)))

ifneq ($(CROSS),)
CC       = $(CROSS)gcc$(if $(SYSROOT), --sysroot=$(abspath $(SYSROOT)))
AR       = $(CROSS)ar
endif

sanitizer  := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
              -fno-omit-frame-pointer)
all_cflags  = -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror -fPIC \
              -ffp-contract=off -Ibuild/include -MMD -MP $(CFLAGS) $(sanitizer)
libraries   = -lz -ljansson -lpthread -lm
target     := $(shell $(CC) -dumpmachine 2>/dev/null)
processor  := $(firstword $(subst -, ,$(target)))

.DEFAULT_GOAL := all
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:

# In parallel, unless the command line says otherwise, or has `clean` before another goal.
processors := $(or $(shell nproc 2>/dev/null),1)
ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS))$(filter clean,$(MAKECMDGOALS)),0)
MAKEFLAGS  += -j$(processors)
endif

# say: one word and a name instead of the command; after [12/747], its number, where STEPS has a file
# with a line for each command before it, and how many there will be. EVERY=100: of each hundredth.
STEPS  =
EVERY  =
number = $(if $(word 2,$(STEPS)),echo >> $(firstword $(STEPS)); n=$$(wc -l < $(firstword $(STEPS))); \
             $(if $(EVERY),[ $$((n % $(EVERY))) -ne 0 ] ||) printf '[%d/%d]%s\n' "$$n" $(lastword $(STEPS)))
say    = $(if $(V),,@$(if $(number),$(number) '  $(1)  $(2)',echo '  $(1)  $(2)');)

# stamp: a file in $(BUILD) that changes when its text does.
stamp = $(shell mkdir -p $(BUILD); cd $(BUILD); \
                echo '$(2)' | cmp -s - $(1) || echo '$(2)' > $(1))

# What there is to build. examples/NAME.c is a program; examples/cornu/ is one, too, of all files in
# its rooms.
folders  := device tensor nn datasets models
sources  := $(sort $(shell find $(folders) -name '*.c'))
examples := $(sort $(wildcard examples/*.c))
tool     := $(sort $(shell find examples/cornu -name '*.c'))
plain     = $(examples:examples/%.c=$(BUILD)/%)
programs  = $(plain) $(BUILD)/cornu
include device/host/isa/isa.mk device/processes/mpi.mk
objects   = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(isa_files) $(mpi_files),$(sources))) $(isa_objects) \
            $(BUILD)/blis.o $(BUILD)/obj/nn/pages/parts.o

all:
	$(again) built

built: $(BUILD)/libcornu.a $(BUILD)/libcornu.so $(programs) $(mpi_plugins)
	@:

compiler := $(shell $(CC) --version 2>/dev/null | head -n 1)
$(call stamp,flags,$(CC) $(compiler) $(all_cflags) $(all_isa_flags) $(LDFLAGS))

$(BUILD)/libcornu.a: $(objects) $(BUILD)/files
	@rm -f $@
	$(call say,ar,$@)$(AR) qcs $@ $(filter %.o,$^)

$(BUILD)/libcornu.so: $(objects) $(BUILD)/files
	@echo '{ global: cornu_[a-z]*; local: *; };' > $(BUILD)/exports
	$(call say,so,$@)$(CC) -shared $(CFLAGS) $(sanitizer) $(LDFLAGS) -Wl,-soname,libcornu.so.0 \
	    -Wl,--version-script=$(BUILD)/exports $(filter %.o,$^) -o $@ $(libraries)
	@ln -sf libcornu.so $@.0

# The headers as `make install` would lay them out. All compiling waits for them, and they for what it
# needs.
build/include/cornu/cornu.h: Makefile
	@$(check_needs)
	@mkdir -p $(@D)
	@for d in $(folders); do ln -sfn ../../../$$d $(@D)/$$d; done
	@printf '#include "%s"\n' nn/cornu.h models/models.h models/translation.h > $@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | build/include/cornu/cornu.h
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(all_cflags) -c $< -o $@

link = $(CC) $(CFLAGS) $(sanitizer) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -o $@

$(plain): $(BUILD)/%: $(BUILD)/obj/examples/%.o
$(BUILD)/cornu: $(tool:%.c=$(BUILD)/obj/%.o)
$(programs): $(BUILD)/libcornu.a $(BUILD)/files
	$(call say,ld,$@)$(link) $(libraries)

# $(again) TARGETS: by another make, in parallel, which numbers its commands: a first one counts them.
# The README's commands look for the packages they need before it, so that it finds the compiler.
again_make = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(processors))
again      = +@again() { \
    $(if $(V)$(STEPS),$(again_make) "$$@",\
        steps=$$($(again_make) -n STEPS=count "$$@" 2>/dev/null | grep -c "^ *echo '  "); \
        : > $(BUILD)/steps; $(again_make) STEPS="$(abspath $(BUILD)/steps) $$steps" "$$@"); }; again

demo: deps
	@[ -x $(BUILD)/cornu ] || echo 'compiling, then training'
	$(again) $(BUILD)/cornu
	@$(BUILD)/cornu demo

clean:
	rm -rf build

.PHONY: all built demo clean
include device/cpu/blis.mk nn/formats/hdf5.mk nn/pages/pages.mk nn/prediction/inference.mk nn/pages/dashboard/microhttpd.mk \
        examples/cornu/install.mk nn/python/wheel.mk .packages.mk
include tests/tests.mk tests/fuzz/fuzz.mk tests/lint.mk
$(call stamp,files,$(objects) $(test_helpers) $(bench_files) $(tool))
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
include .packaging/deb.mk
