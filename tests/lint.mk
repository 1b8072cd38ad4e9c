# make lint reads the code: lines, cppcheck, gcc's analyser, clang-tidy, which files need each other
# (tests/circles.sh, also make check-circles), and whether each public function has a comment
# (tests/prototypes.awk). make format writes it as .clang-format says.

tidy_files = $(sort $(shell find $(folders) examples tests -name '*.[ch]' 2>/dev/null))

# Without what cppcheck gets wrong as it sees one file at a time: buffers that a function of
# another file fills, NULLs that one refuses. .clang-tidy says what clang-tidy goes without.
cppcheck_off := missingIncludeSystem unknownEvaluationOrder uninitvar legacyUninitvar ctuuninitvar \
                uninitdata ctunullpointer

# gcc's analyser goes without the same two kinds, and without tests, which end where a pointer is
# NULL. It and clang-tidy read what is compiled once.
analyzer_off := use-of-uninitialized-value null-argument
lint_cflags   = -std=c11 -D_POSIX_C_SOURCE=200809L -Ibuild/include $(hdf5_cflags)
lint_files    = $(filter-out $(isa_files) $(mpi_files),$(filter %.c,$(tidy_files)))
lint_each     = tr ' ' '\n' <$(BUILD)/$(1) | xargs -P $(shell nproc) -I{}

check-circles: $(objects)
	@bash tests/circles.sh $(BUILD) $(filter $(BUILD)/obj/%,$^)

format:
	clang-format -i $(tidy_files)

# Lists of files pass through files: together they are longer than a command may be.
lint: build/include/cornu/cornu.h $(objects)
	$(file >$(BUILD)/lint.all,$(tidy_files))
	$(file >$(BUILD)/lint.sources,$(lint_files))
	$(file >$(BUILD)/lint.library,$(filter-out tests/%,$(lint_files)))
	@bad=0; \
	$(MAKE) --no-print-directory check-circles || bad=1; \
	LC_ALL=C.UTF-8 grep -nE '^.{101}|[[:blank:]]$$|	' $$(cat $(BUILD)/lint.all) && \
	    echo "lint: over 100 columns, blanks at the end, or a tab" && bad=1; \
	awk -f tests/prototypes.awk $(filter %.h,$(headers)) || bad=1; \
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
	    -Ibuild/include '-Djson_object_foreach(object,key,value)=while((value=(void*)(key="")))' \
	    '-Dfail_msg(...)=abort()' \
	    $(cppcheck_off:%=--suppress=%) --error-exitcode=1 \
	    $$(tr ' ' '\n' <$(BUILD)/lint.all | grep '\.c$$') || bad=1; \
	$(call lint_each,lint.library) gcc -fanalyzer -Werror \
	    $(analyzer_off:%=-Wno-analyzer-%) $(lint_cflags) -c {} -o /dev/null || bad=1; \
	$(call lint_each,lint.sources) clang-tidy --quiet {} -- $(lint_cflags) || bad=1; \
	exit $$bad

.PHONY: lint check-circles format
