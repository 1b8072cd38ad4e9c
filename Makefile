# Cornu: `make` builds build/libcornu.{a,so} and every program as build/NAME; all that is
# generated stays below build/. A new file needs no edit here: folders are searched, and one
# rule per kind of file says how it is built.
#
#   make CC=clang                     a changed compiler or flag rebuilds all;
#   make CC=clang BUILD=build/clang   or keep both
#   make SANITIZE=address,undefined   in a folder of its own; likewise SANITIZE=thread
#   make HDF5=                        without libhdf5's header, which .keras and .h5 files need
#   make CROSS=PREFIX- SYSROOT=DIR    by PREFIX-gcc and its binutils, with the libraries in DIR
#   make test T=idx                   the test programs whose path contains "idx"
#   make test RESUME=1                goes on after an interruption; JOBS=1 one at a time
#   make check-isa                    all tests under each instruction set
#   make check-programs SECONDS=60 SEED=N   random programs on every device; COUNT=1 repeats one
#   make check-models SECONDS=60 SEED=N     random models likewise
#   make check-arm64 T=idx            all tests that compute, built for arm64, by an emulator
#   make fuzz SECONDS=60 T=idx        libFuzzer for so long on each such target in tests/fuzz, all
#                                     without T
#   make check-mutants T=reduce       puts faults into copies of the code: tests must notice them
#   make V=1                          shows whole commands
#   make install PREFIX=/opt/cornu DESTDIR=...    and uninstall, with the same

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

# libhdf5 may be absent: its header, of Debian's serial build or another one, and the name under
# which the library is loaded when it is needed (nn/formats/hdf5_library.c).
HDF5       ?= $(firstword $(wildcard $(SYSROOT)/usr/include/hdf5/serial/hdf5.h \
                                     $(SYSROOT)/usr/include/hdf5.h \
                                     $(SYSROOT)/usr/local/include/hdf5.h))
hdf5_file   = libhdf5$(if $(findstring /serial/,$(HDF5)),_serial).so
hdf5_name  := $(if $(HDF5),$(shell $(CROSS)objdump -p "$$($(CC) -print-file-name=$(hdf5_file))" \
                               2>/dev/null | sed -n 's/^ *SONAME *//p'))
hdf5_cflags = $(if $(HDF5),-DCORNU_HDF5=$(or $(hdf5_name),$(hdf5_file)) -isystem $(dir $(HDF5)))

.DEFAULT_GOAL := all
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:

# say: one word and a name instead of the command.
say = $(if $(V),,@echo '  $(1)  $(2)';)

# What depends on the processor: the instruction sets of f32, of products of bf16 and of AMX, and
# which of BLIS' sets of kernels are left out.
isas_x86_64         := avx2 avx512
bf16_isas_x86_64    := avx512bf16
amx_isas_x86_64     := amx
isas_aarch64        := neon
bf16_isas_aarch64   := neonbf16
blis_dropped_x86_64 := knl sandybridge penryn zen3 zen2 zen excavator steamroller piledriver \
                       bulldozer

# What there is to build. A file in an isa/ folder is compiled once per instruction set, with
# CORNU_ISA_NAME naming it, and nothing else sees those flags; NAME_bf16.c for those alone that
# multiply bf16, NAME_amx.c for AMX.
folders   := device tensor nn datasets models
sources   := $(sort $(shell find $(folders) -name '*.c'))
isas      := portable $(isas_$(processor))
isa_files := $(foreach f,$(sources),$(if $(findstring /isa/,$(f)),$(f)))
sources   := $(filter-out $(isa_files),$(sources))
bf16_isas := $(bf16_isas_$(processor))
amx_isas  := $(amx_isas_$(processor))
isas_of    = $(if $(filter %_bf16.c,$(1)),$(bf16_isas),$(if $(filter %_amx.c,$(1)),$(amx_isas),$(isas)))
isa_object = $(foreach isa,$(call isas_of,$(1)),$(1:%.c=$(BUILD)/obj/%.$(isa).o))
objects    = $(sources:%.c=$(BUILD)/obj/%.o) $(foreach f,$(isa_files),$(call isa_object,$(f))) $(BUILD)/blis.o

# Tiles are unrolled whole; with sanitizers' checks in them -O3 takes minutes a file.
isa_flags = $(if $(SANITIZE),-O1,-O3) -ffp-contract=fast -fopenmp-simd -fno-math-errno \
            -fno-trapping-math
isa_flags_portable =
isa_flags_avx2     = -mavx2 -mfma
isa_flags_avx512   = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
isa_flags_avx512bf16 = $(isa_flags_avx512) -mavx512bf16
isa_flags_amx      = $(isa_flags_avx512bf16) -mamx-tile -mamx-bf16
# Every compiler for arm64 assumes NEON: what is written for it is told from portable by a name.
# gcc 12 would move all loads of a tile's step before its products; there are no registers for them.
isa_flags_neon     = -DCORNU_NEON $(if $(findstring clang,$(CC)),,-fno-schedule-insns)
isa_flags_neonbf16 = $(isa_flags_neon) -march=armv8.2-a+bf16

# examples/NAME.c with a main is a program; the other files there are shared by all of them.
# tests/**/test_NAME.c is a program; the other files there are shared by those, but tests/bench/
# makes one program of its own, those in tests/install/ are compiled as their users would do it, and
# each in tests/fuzz/ but replay.c is what is to be fuzzed.
shared        := $(sort $(shell grep -L '^int main' examples/*.c 2>/dev/null))
examples      := $(filter-out $(shared),$(sort $(wildcard examples/*.c)))
programs       = $(examples:examples/%.c=$(BUILD)/%)
test_tree     := $(sort $(shell find tests -name '*.c' ! -path 'tests/install/*' \
                               ! -path 'tests/fuzz/*' 2>/dev/null))
bench_files   := $(filter tests/bench/%,$(test_tree))
test_sources  := $(foreach f,$(test_tree),$(if $(filter test_%,$(notdir $(f))),$(f)))
test_helpers  := $(filter-out $(bench_files) $(test_sources),$(test_tree))
test_programs  = $(test_sources:tests/%.c=$(BUILD)/tests/%)
test_scripts  := $(sort $(shell find tests -name 'test_*.sh' 2>/dev/null))
all_tests      = $(test_programs) $(test_scripts)
chosen         = $(foreach t,$(all_tests),$(if $(findstring $(T),$(t)),$(t)))
tests          = $(if $(T),$(chosen),$(all_tests))
bench          = $(if $(bench_files),$(BUILD)/bench)
fuzz_sources  := $(filter-out tests/fuzz/replay.c,$(sort $(wildcard tests/fuzz/*.c)))
fuzz_chosen    = $(if $(T),$(foreach f,$(fuzz_sources),$(if $(findstring $(T),$(f)),$(f))),$(fuzz_sources))
fuzz_programs  = $(fuzz_sources:tests/%.c=$(BUILD)/tests/%)

all: $(BUILD)/libcornu.a $(BUILD)/libcornu.so $(programs)
	@:

# Stamps that change when the flags, the compiler or the list of files change.
compiler := $(shell $(CC) --version 2>/dev/null | head -n 1)
stamp = $(shell mkdir -p $(BUILD); cd $(BUILD); \
                echo '$(2)' | cmp -s - $(1) || echo '$(2)' > $(1))
$(call stamp,flags,$(CC) $(compiler) $(all_cflags) $(isa_flags) \
                   $(foreach i,$(isas) $(bf16_isas) $(amx_isas),$(isa_flags_$(i))) $(LDFLAGS))
$(call stamp,hdf5,$(hdf5_cflags))
$(call stamp,files,$(objects) $(test_helpers) $(bench_files))

$(BUILD)/libcornu.a: $(objects) $(BUILD)/files
	@rm -f $@
	$(call say,ar,$@)$(AR) qcs $@ $(filter %.o,$^)

$(BUILD)/libcornu.so: $(objects) $(BUILD)/files
	@echo '{ global: cornu_[a-z]*; local: *; };' > $(BUILD)/exports
	$(call say,so,$@)$(CC) -shared $(CFLAGS) $(sanitizer) $(LDFLAGS) -Wl,-soname,libcornu.so.0 \
	    -Wl,--version-script=$(BUILD)/exports $(filter %.o,$^) -o $@ $(libraries)
	@ln -sf libcornu.so $@.0

# BLIS as one object with hidden names: what our entry points need, its own malloc, free and
# getenv replaced (device/cpu/blis.c). On x86-64 three of its fourteen sets of kernels are kept,
# a third of the size; the numbers of the others lead to generic ones. Elsewhere it has one set.
debian_target = $(target:%-pc-linux-gnu=%-linux-gnu)
BLIS         ?= $(firstword $(wildcard $(SYSROOT)/usr/lib/$(debian_target)/blis-serial/libblis.a \
                                       $(SYSROOT)/usr/lib/*/blis-serial/libblis.a))
blis_entries := bli_init bli_sgemm bli_arch_query_id bli_arch_string bli_info_get_version_str
blis_calls   := malloc free getenv

$(BUILD)/blis.o: $(BLIS) Makefile
	@[ -n "$(BLIS)" ] || { echo "blis-serial/libblis.a not found; see: make deps"; exit 1; }
	@mkdir -p $(@D)
	$(call say,ld,$@)$(CROSS)ld -r -d -o $@.all $(blis_entries:%=-u %) \
	    $(foreach d,$(blis_dropped_$(processor)),$(foreach k,@ _ref _ind,\
	        --defsym=bli_cntx_init_$(d)$(k:@=)=bli_cntx_init_generic$(k:@=))) $(BLIS)
	@$(CROSS)objcopy --strip-debug $(blis_entries:%=--keep-global-symbol=%) $@.all
	@$(CROSS)objcopy $(foreach e,$(blis_entries),--redefine-sym $(e)=cornu__$(e)) \
	    $(foreach c,$(blis_calls),--redefine-sym $(c)=cornu__blis_$(c)) $@.all $@
	@rm $@.all

# The headers as `make install` would lay them out.
build/include/cornu/cornu.h: Makefile
	@mkdir -p $(@D)
	@for d in $(folders); do ln -sfn ../../../$$d $(@D)/$$d; done
	@printf '#include "%s"\n' nn/cornu.h models/models.h > $@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | build/include/cornu/cornu.h
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(all_cflags) -c $< -o $@

hdf5_objects = $(BUILD)/obj/nn/formats/hdf5.o $(BUILD)/obj/nn/formats/hdf5_library.o
$(hdf5_objects): $(BUILD)/hdf5
$(hdf5_objects): all_cflags += $(hdf5_cflags)

define isa_rule
$(BUILD)/obj/%.$(1).o: %.c $(BUILD)/flags | build/include/cornu/cornu.h
	@mkdir -p $$(@D)
	$$(call say,cc,$$< ($(1)))$$(CC) $$(all_cflags) $$(isa_flags) $$(isa_flags_$(1)) \
	    -DCORNU_ISA_NAME=$(1) -c $$< -o $$@
endef
$(foreach isa,$(isas) $(bf16_isas) $(amx_isas),$(eval $(call isa_rule,$(isa))))

link = $(CC) $(CFLAGS) $(sanitizer) $(LDFLAGS) $(filter %.o %.a,$^) -o $@

$(programs): $(BUILD)/%: $(BUILD)/obj/examples/%.o $(shared:%.c=$(BUILD)/obj/%.o) \
             $(BUILD)/libcornu.a
	$(call say,ld,$@)$(link) $(libraries)

$(test_programs): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(test_helpers:%.c=$(BUILD)/obj/%.o) \
                  $(BUILD)/libcornu.a $(BUILD)/files
	@mkdir -p $(@D)
	$(call say,ld,$@)$(link) -lcmocka $(libraries)

$(BUILD)/bench: $(bench_files:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/examples/options.o \
                $(BUILD)/libcornu.a $(BUILD)/files
	$(call say,ld,$@)$(link) $(libraries)

# Fuzzing: where clang has libFuzzer the targets are built by it in $(BUILD)/fuzz, with what reads
# files instrumented and the rest out of LIBRARY. Elsewhere, and with other sanitizers, they are
# programs that run over the inputs that are kept.
FUZZ_CC ?= clang
LIBRARY  = $(BUILD)/libcornu.a
fuzz_runtime := $(if $(SANITIZE)$(CROSS),,$(wildcard \
                  $(shell $(FUZZ_CC) -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer*.a))
fuzzing := $(findstring fuzzer,$(SANITIZE))
fuzzed   = $(filter $(BUILD)/obj/nn/% $(BUILD)/obj/datasets/%,$(objects))

$(BUILD)/libfuzzed.a: $(fuzzed) $(BUILD)/files
	@rm -f $@
	$(call say,ar,$@)$(AR) qcs $@ $(filter %.o,$^)

$(fuzz_programs): $(BUILD)/%: $(BUILD)/obj/%.o $(BUILD)/obj/examples/options.o \
                  $(if $(fuzzing),$(BUILD)/libfuzzed.a,$(BUILD)/obj/tests/fuzz/replay.o) $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,ld,$@)$(subst fuzzer-no-link,fuzzer,$(link)) $(libraries)

fuzz_build = CC=$(FUZZ_CC) BUILD=$(BUILD)/fuzz SANITIZE=fuzzer-no-link,address,undefined \
             CFLAGS='-O1 -gline-tables-only' LIBRARY=$(BUILD)/libcornu.a

fuzz-programs: $(if $(fuzz_runtime),$(LIBRARY),$(fuzz_programs))
	$(if $(fuzz_runtime),$(again) $(fuzz_build) fuzz-programs)

# The README's commands. What they need is looked for first; a second make then builds, as the
# compiler may have come only now.
parallel = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
again    = +@$(MAKE) --no-print-directory $(parallel)

demo: deps
	$(again) $(BUILD)/demo
	@$(BUILD)/demo

# With ISAS="portable avx2" the test programs that compute run under these, too. make check-isa runs
# all of them under portable, avx2 and the best; tests/run skips by name what the processor lacks.
ISAS      =
computing = $(filter $(foreach d,device tensor nn models,$(BUILD)/tests/$(d)/%),$(tests))
run_tests = @JOBS=$(JOBS) RESUME=$(RESUME) tests/run $(BUILD)

test: deps-test
	$(again) test-programs
	$(run_tests) $(tests) $(foreach i,$(ISAS),CORNU_ISA=$(i) $(computing))

check-isa: deps-test
	$(again) all test-programs
	$(run_tests) $(foreach i,portable avx2,CORNU_ISA=$(i) $(tests)) CORNU_ISA= $(tests)

# Test scripts may run any program; chosen test programs need nothing else.
test-programs: $(filter-out %.sh,$(tests)) $(if $(T),$(if $(filter %.sh,$(tests)),all $(bench)),all $(bench)) \
               $(if $(filter tests/fuzz/%,$(tests)),fuzz-programs)
	@:

# The long trainings on the real digits, against the published accuracies; minutes.
check-training: deps-test
	$(again) all $(BUILD)/tests/examples/test_predict
	@bash tests/training/check.sh $(BUILD)

# All is built for arm64, and what computes is tested by an emulator: hours. T= chooses, as for test.
check-arm64: deps-arm64
	$(again) $(arm64) emulated-tests

emulated-tests: test-programs
	@bash tests/arm64/check.sh $(BUILD) $(SYSROOT) $(tests)

arm64 = BUILD=$(BUILD)/arm64 CROSS=aarch64-linux-gnu- SYSROOT=$(BUILD)/arm64/sysroot

# What may go wrong with memory, disks, files and processes: a line NAME TRIED SURVIVED for each.
check-faults: deps-test
	$(again) $(BUILD)/tests/faults/test_faults
	@$(BUILD)/tests/faults/test_faults --report

# A line NAME KILLED or NAME SURVIVED for each fault of tests/mutants/faults.list.
check-mutants: deps-test
	+@bash tests/mutants/run.sh $(BUILD) '$(T)'

# Random programs of all ops on every device, beside the reference: for so many seconds, or COUNT of
# them. Each finding is printed as a program and as a test, with the seed that repeats it.
SECONDS = 60
SEED    = $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
COUNT   =
check-programs: deps-test
	$(again) $(BUILD)/tests/check/test_programs
	@$(BUILD)/tests/check/test_programs --seconds $(SECONDS) --seed $(SEED) $(COUNT:%=--count %)

# Random models likewise: predictions, and those after three training steps.
check-models: deps-test
	$(again) $(BUILD)/tests/check/test_models
	@$(BUILD)/tests/check/test_models --seconds $(SECONDS) --seed $(SEED) $(COUNT:%=--count %)

# A line NAME EXECUTIONS EXECUTIONS_PER_SECOND FINDINGS for each target.
fuzz: deps-fuzz
	$(again) fuzz-programs
	@bash tests/fuzz/run.sh $(BUILD)/fuzz $(SECONDS) $(fuzz_chosen)

# Some minutes, on a machine that does nothing else.
bench: $(bench)
	$(bench) --json $(BUILD)/bench.json

# What must be there, as header, file or tool:package of Debian. Installs by apt-get, never waiting
# for a password; elsewhere says what is missing. curl fetches the data sets; wget would do too.
needs      := $(firstword $(CC)):$(if $(findstring clang,$(CC)),clang,gcc) ld:binutils \
              stdio.h:libc6-dev zlib.h:zlib1g-dev jansson.h:libjansson-dev \
              blis-serial/blis.h:libblis-serial-dev stb/stb_image.h:libstb-dev \
              curl:curl /etc/ssl/certs/ca-certificates.crt:ca-certificates
test_needs := cmocka.h:libcmocka-dev hdf5/serial/hdf5.h:libhdf5-dev

arm64_needs    := aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64:qemu-user
arm64_packages := zlib1g-dev libjansson-dev libblis-serial-dev libstb-dev libcmocka-dev libhdf5-dev

deps:      ; @$(call find_needs,$(needs))
deps-test: ; @$(call find_needs,$(needs) $(test_needs))
deps-fuzz: ; @$(call find_needs,$(needs) clang:clang $(if $(fuzz_runtime),,libFuzzer:libclang-rt-dev))

# The libraries of arm64 are unpacked in the folder of the build; the machine's own packages, and
# what apt and dpkg know of them, stay as they are.
deps-arm64:
	@$(call find_needs,$(arm64_needs))
	@bash tests/arm64/sysroot.sh $(BUILD)/arm64 $(arm64_packages)

define find_needs
missing=; \
for need in $(1); do \
    case $${need%:*} in \
    *.h) for d in /usr/include /usr/local/include /usr/include/*-linux-gnu; do \
             [ -e $$d/$${need%:*} ] && continue 2; done;; \
    /*) [ -e $${need%:*} ] && continue;; \
    curl) command -v curl wget >/dev/null && continue;; \
    *) command -v $${need%:*} >/dev/null && continue;; \
    esac; \
    missing="$$missing $${need#*:}"; \
done; \
[ -z "$$missing" ] && exit 0; \
if ! command -v apt-get >/dev/null; then \
    echo "Cornu needs these Debian packages or their like; please install:$$missing"; exit 1; fi; \
if [ $$(id -u) = 0 ]; then as=; elif [ -t 0 ]; then as=sudo; else as="sudo -n"; fi; \
echo "installing$$missing"; \
$$as apt-get update -q && \
$$as env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing || \
    { echo "could not install; as root: apt-get install$$missing"; exit 1; }
endef

# ---- Installing: headers, libraries, cornu.pc, programs, manual pages ----

PREFIX  = /usr/local
DESTDIR =
own     = $(filter-out /usr /usr/local,$(PREFIX))
version = $(shell sed -n 's/^#define CORNU_VERSION "\(.*\)"/\1/p' nn/cornu.h)

# The public headers: a header that names a cornu__function is internal, and so is device/host but
# for what it says of the machine.
headers = $(sort $(wildcard device/ops/*.def device/tpu/*.def) $(shell grep -L cornu__ \
              $$(find $(folders) -name '*.h' ! -name '*_internal.h' \
                     ! \( -path 'device/host/*' ! -path 'device/host/machine/*' \))))

# Programs that know --help, whose text becomes the manual page; the demo tells of the source tree.
with_help = $(filter-out demo,$(patsubst examples/%.c,%,$(filter $(examples),\
                $(shell grep -l options_parse examples/*.c))))
man_pages = $(with_help:%=$(BUILD)/man/%.1) $(BUILD)/man/cornu.7

$(BUILD)/man/%.1: $(BUILD)/% examples/man.awk
	@mkdir -p $(@D)
	$(call say,man,$@)$< --help | awk -f examples/man.awk -v version='Cornu $(version)' > $@

$(BUILD)/man/cornu.7: nn/cornu.7 nn/cornu.h examples/own_model.c $(with_help:%=$(BUILD)/man/%.1)
	@for p in $(with_help); do printf '.TP\n.BR %s (1)\n' $$p; \
	     sed -n '/^.SH DESCRIPTION/{n;p}' $(@D)/$$p.1; done > $@.programs
	@sed 's/\\/\\e/g; s/-/\\-/g' examples/own_model.c > $@.example
	$(call say,man,$@)sed -e '/@VERSION@/s/@VERSION@/Cornu $(version)/' -e 1d \
	    -e '/^@PROGRAMS@/{r $@.programs' -e 'd}' -e '/^@EXAMPLE@/{r $@.example' -e 'd}' $< > $@
	@rm $@.programs $@.example

# MODE:FILE:PLACE, the place below PREFIX.
installed = $(foreach h,$(headers),644:$(h):include/cornu/$(h)) \
            644:build/include/cornu/cornu.h:include/cornu/cornu.h \
            644:$(BUILD)/libcornu.a:lib/libcornu.a \
            755:$(BUILD)/libcornu.so:lib/libcornu.so.0 \
            644:$(BUILD)/cornu.pc:lib/pkgconfig/cornu.pc \
            $(foreach p,$(with_help),755:$(BUILD)/$(p):bin/$(p) \
                                     644:$(BUILD)/man/$(p).1:share/man/man1/$(p).1) \
            644:$(BUILD)/man/cornu.7:share/man/man7/cornu.7

# The libraries in Libs.private are for static linking; most programs need libm themselves. In a
# prefix of the user's own the run-time linker finds libcornu only where the program says.
define pkg_config
prefix=$(PREFIX)
includedir=$${prefix}/include
libdir=$${prefix}/lib

Name: cornu
Description: Keras in C: a neural-network training framework
Version: $(version)
Cflags: -I"$${includedir}"
Libs: -L"$${libdir}" $(if $(own),-Wl$(comma)-rpath$(comma)"$${libdir}" )-lcornu -lm
Libs.private: $(libraries)
endef
export pkg_config

# The run-time linker learns of a library where it looks for some, and of none in DESTDIR.
install: all $(man_pages)
	@case "$(PREFIX)" in /*) ;; \
	 *) echo "PREFIX is \"$(PREFIX)\", expected a path from /"; exit 1;; esac
	@printf '%s\n' "$$pkg_config" > $(BUILD)/cornu.pc
	@for i in $(installed); do \
	    to="$(DESTDIR)$(PREFIX)/$${i##*:}"; from=$${i#*:}; \
	    install -D -m $${i%%:*} "$${from%:*}" "$$to" || exit 1; \
	done
	@ln -sf libcornu.so.0 "$(DESTDIR)$(PREFIX)/lib/libcornu.so"
	@if [ -z "$(DESTDIR)$(own)" ] && [ $$(id -u) = 0 ]; then ldconfig; fi
	@echo "installed Cornu $(version) in $(DESTDIR)$(PREFIX)"

# Removes these files, and folders below include/cornu that are empty then.
uninstall:
	@for i in $(installed) lib/libcornu.so; do rm -f "$(DESTDIR)$(PREFIX)/$${i##*:}"; done
	@[ ! -d "$(DESTDIR)$(PREFIX)/include/cornu" ] || \
	    find "$(DESTDIR)$(PREFIX)/include/cornu" -depth -type d -empty -delete
	@if [ -z "$(DESTDIR)$(own)" ] && [ $$(id -u) = 0 ]; then ldconfig; fi

# Pages of the public headers, by Doxygen, which is told that our comments are meant for it: the
# first one of a file is the file's, those behind a field the field's, and headings are none.
define doxyfile
PROJECT_NAME           = Cornu
PROJECT_NUMBER         = $(version)
PROJECT_BRIEF          = "Keras in C"
OUTPUT_DIRECTORY       = $(BUILD)/docs
INPUT                  = $(filter %.h,$(headers)) $(CURDIR)/README.md nn/README.md
USE_MDFILE_AS_MAINPAGE = $(CURDIR)/README.md
FILTER_PATTERNS        = *.h=$(BUILD)/docs/filter
OPTIMIZE_OUTPUT_FOR_C  = YES
EXTRACT_ALL            = YES
JAVADOC_AUTOBRIEF      = YES
TYPEDEF_HIDES_STRUCT   = YES
MACRO_EXPANSION        = YES
STRIP_FROM_PATH        = .
GENERATE_LATEX         = NO
HAVE_DOT               = NO
QUIET                  = YES
WARN_IF_UNDOCUMENTED   = NO
WARN_LOGFILE           = $(BUILD)/docs/warnings
endef
export doxyfile

define doxygen_filter
#!/bin/sh
sed -e '1s,^/\*,/** @file\n *,' -e '/^ *\/\* ----/b' -e '2,$$s,^\( *\)/\*\( .*\)*$$,\1/**\2,' \
    -e 's,\([^ /].*[ ;]\)/\*\( .*\)*$$,\1 /**<\2,' "$$1"
endef
export doxygen_filter

docs:
	@command -v doxygen >/dev/null || { echo "make docs needs: apt-get install doxygen"; exit 1; }
	@mkdir -p $(BUILD)/docs
	@printf '%s\n' "$$doxygen_filter" > $(BUILD)/docs/filter
	@chmod +x $(BUILD)/docs/filter
	$(call say,docs,$(BUILD)/docs/html/index.html)printf '%s\n' "$$doxyfile" | doxygen -
	@cat $(BUILD)/docs/warnings; [ ! -s $(BUILD)/docs/warnings ]

tidy_files = $(sort $(shell find $(folders) examples tests -name '*.[ch]' 2>/dev/null))

# Without what cppcheck gets wrong as it sees one file at a time: buffers that a function of
# another file fills, NULLs that one refuses. .clang-tidy says what clang-tidy goes without.
cppcheck_off := missingIncludeSystem unknownEvaluationOrder uninitvar legacyUninitvar ctuuninitvar \
                uninitdata ctunullpointer

# gcc's analyser goes without the same two kinds, and without tests, which end where a pointer is
# NULL. It and clang-tidy read what is compiled once.
analyzer_off := use-of-uninitialized-value null-argument
lint_cflags   = -std=c11 -D_POSIX_C_SOURCE=200809L -Ibuild/include $(hdf5_cflags)
lint_files    = $(filter-out $(isa_files),$(filter %.c,$(tidy_files)))
lint_each     = printf '%s\n' $(1) | xargs -P $(shell nproc) -I{}

# What calls and includes may not do: see there.
check-circles: $(objects)
	@bash tests/circles.sh $(BUILD) $(filter $(BUILD)/obj/%,$^)

format:
	clang-format -i $(tidy_files)

lint: build/include/cornu/cornu.h $(objects)
	@bad=0; \
	bash tests/circles.sh $(BUILD) $(filter $(BUILD)/obj/%,$(objects)) || bad=1; \
	LC_ALL=C.UTF-8 grep -nE '^.{101}|[[:blank:]]$$|	' $(tidy_files) && \
	    echo "lint: over 100 columns, blanks at the end, or a tab" && bad=1; \
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
	    -Ibuild/include '-Djson_object_foreach(object,key,value)=while((value=(void*)(key="")))' \
	    $(cppcheck_off:%=--suppress=%) --error-exitcode=1 $(filter %.c,$(tidy_files)) || bad=1; \
	$(call lint_each,$(filter-out tests/%,$(lint_files))) gcc -fanalyzer -Werror \
	    $(analyzer_off:%=-Wno-analyzer-%) $(lint_cflags) -c {} -o /dev/null || bad=1; \
	$(call lint_each,$(lint_files)) clang-tidy --quiet {} -- $(lint_cflags) || bad=1; \
	exit $$bad

clean:
	rm -rf build

.PHONY: all demo test test-programs emulated-tests check-isa check-arm64 check-training \
        check-faults check-mutants check-programs check-models check-circles fuzz fuzz-programs bench deps \
        deps-test deps-fuzz deps-arm64 install uninstall docs format lint clean
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
