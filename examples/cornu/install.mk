# make install PREFIX=DIR DESTDIR=DIR: headers, libraries, what pkg-config and CMake read, cornu,
# manual pages, completion for bash; make uninstall; make docs, HTML of the headers. The program uses
# libcornu.so, and all is stripped: 23 MB. `make install STRIP=` keeps what a debugger reads, 88 MB.

PREFIX  = /usr/local
LIBDIR  = lib
DESTDIR =
own     = $(filter-out /usr /usr/local,$(PREFIX))
version = $(shell sed -n 's/^#define CORNU_VERSION "\(.*\)"/\1/p' device/version.h)

# The public headers. One that names a cornu__function is internal; so are those of device/host,
# except for what they say about the machine.
headers = $(sort $(wildcard device/ops/*.def device/tpu/*.def) $(shell grep -L cornu__ \
              $$(find $(folders) -name '*.h' ! -name '*_internal.h' \
                     ! \( -path 'device/host/*' ! -path 'device/host/machine/*' \))))

# The program cornu, with a manual page of its own and one for each command, by its --help, which
# `man cornu COMMAND` shows.
commands := $(shell awk -F, '/^COMMAND/ { print substr($$1, 9) }' examples/cornu/commands.def)
pages     = cornu $(addprefix cornu-,$(commands))
man_pages = $(pages:%=$(BUILD)/man/%.1) $(BUILD)/man/cornu.7

$(pages:%=$(BUILD)/man/%.1): $(BUILD)/man/%.1: $(BUILD)/cornu examples/cornu/man.awk \
                                               examples/cornu/install.mk
	@mkdir -p $(@D)
	$(call say,man,$@)$(BUILD)/cornu help $(patsubst cornu-%,%,$(filter cornu-%,$*)) | \
	    awk -f examples/cornu/man.awk -v page=$* -v version='Cornu $(version)' > $@

$(BUILD)/man/cornu.7: examples/cornu/cornu.7 device/version.h examples/own_model.c \
                      examples/cornu/install.mk $(pages:%=$(BUILD)/man/%.1)
	@{ $(foreach p,$(pages),printf '.TP\n.BR %s (1)\n' $(p); \
	       sed -n '/^.SH DESCRIPTION/{n;p}' $(@D)/$(p).1;) } > $@.pages
	@sed 's/\\/\\e/g; s/-/\\-/g' examples/own_model.c > $@.example
	$(call say,man,$@)sed -e '/@VERSION@/s/@VERSION@/Cornu $(version)/' -e 1d \
	    -e '/^@PAGES@/{r $@.pages' -e 'd}' -e '/^@EXAMPLE@/{r $@.example' -e 'd}' $< > $@
	@rm $@.pages $@.example

# The installed program uses libcornu.so, which that in $(BUILD) contains: it finds it beside its
# folder, except under /usr, where the run-time linker does.
beside  = $(if $(filter /usr,$(PREFIX)),,-Wl$(comma)-rpath$(comma)'$$ORIGIN/../$(LIBDIR)')
linked := $(BUILD)/shared/$(if $(filter /usr,$(PREFIX)),usr,$(subst /,-,$(LIBDIR)))/cornu
$(linked): $(tool:%.c=$(BUILD)/obj/%.o) | $(BUILD)/libcornu.so
	@mkdir -p $(@D)
	$(call say,ld,$@)$(link) -L$(BUILD) -lcornu $(beside) $(libraries)

STRIP     = $(CROSS)strip

# MODE:FILE:PATH, the path below PREFIX. Files that say where Cornu is are written for each PREFIX.
written   = $(BUILD)
completed = share/bash-completion/completions
installed = $(foreach h,$(headers),644:$(h):include/cornu/$(h)) \
            644:build/include/cornu/cornu.h:include/cornu/cornu.h \
            644:$(BUILD)/libcornu.a:$(LIBDIR)/libcornu.a \
            755:$(BUILD)/libcornu.so:$(LIBDIR)/libcornu.so.0 \
            $(foreach p,$(mpi_plugins),755:$(p):$(LIBDIR)/cornu/$(notdir $(p))) \
            644:$(written)/cornu.pc:$(LIBDIR)/pkgconfig/cornu.pc \
            $(foreach f,CornuConfig CornuConfigVersion,\
                644:$(written)/$(f).cmake:$(LIBDIR)/cmake/Cornu/$(f).cmake) \
            755:$(linked):bin/cornu 644:.packaging/completion.bash:$(completed)/cornu \
            $(foreach p,$(pages),644:$(BUILD)/man/$(p).1:share/man/man1/$(p).1) \
            644:$(BUILD)/man/cornu.7:share/man/man7/cornu.7

# Libs.private is for static linking; most programs need libm themselves. Under a prefix that the
# run-time linker does not search, the program says where libcornu is.
define pkg_config
prefix=$(PREFIX)
includedir=$${prefix}/include
libdir=$${prefix}/$(LIBDIR)

Name: cornu
Description: Keras in C: a neural-network training framework
Version: $(version)
License: Apache-2.0
Cflags: -I"$${includedir}"
Libs: -L"$${libdir}" $(if $(own),-Wl$(comma)-rpath$(comma)"$${libdir}" )-lcornu -lm
Libs.private: $(libraries)
endef
export pkg_config

# What to tell pkg-config, and the run-time linker where a program was not linked by its flags.
define own_prefix
pkg-config finds it after the first line, CMake by -DCMAKE_PREFIX_PATH="$(PREFIX)".
Programs linked so find libcornu.so.0 by themselves (-Wl,-rpath), others after the second line:
    export PKG_CONFIG_PATH="$(PREFIX)/$(LIBDIR)/pkgconfig"
    export LD_LIBRARY_PATH="$(PREFIX)/$(LIBDIR)"
endef
export own_prefix

# The folders that install made, so that uninstall removes those, and no other, when they are empty;
# packages have no such list.
folders_made = $(if $(filter /usr,$(PREFIX)),,$(LIBDIR)/cornu/folders)

# ldconfig makes a library known where the run-time linker searches, so not in DESTDIR.
install:
	@case "$(PREFIX)" in /*) ;; \
	 *) echo "PREFIX is \"$(PREFIX)\", expected a path from /"; exit 1;; esac
	$(again) built $(linked) $(man_pages)
	@printf '%s\n' "$$pkg_config" > $(written)/cornu.pc
	@for f in CornuConfig CornuConfigVersion; do \
	    sed -e 's,@VERSION@,$(version),' -e 's,@LIBDIR@,$(LIBDIR),' \
	        -e 's,@LIBRARIES@,$(subst $() -,;-,$(libraries)),' \
	        .packaging/$$f.cmake > $(written)/$$f.cmake || exit 1; \
	done
	@made=; \
	for i in $(installed) $(folders_made:%=:%); do \
	    to="$(PREFIX)/$${i##*:}"; from=$${i#*:}; \
	    folder="$${to%/*}"; \
	    while [ -n "$$folder" ] && [ ! -d "$(DESTDIR)$$folder" ]; do \
	        made="$$made$$folder|"; folder="$${folder%/*}"; \
	    done; \
	    mkdir -p "$(DESTDIR)$${to%/*}" || exit 1; \
	    [ -n "$${i%%:*}" ] || continue; \
	    install -m $${i%%:*} "$${from%:*}" "$(DESTDIR)$$to" || exit 1; \
	    case "$(if $(STRIP),$$to)" in \
	    */bin/*|*.so.0|*.so) $(STRIP) --strip-unneeded "$(DESTDIR)$$to";; \
	    *.a) $(STRIP) --strip-debug "$(DESTDIR)$$to";; \
	    esac || exit 1; \
	done; \
	[ -z "$(folders_made)" ] || \
	    printf '%s' "$$made" | tr '|' '\n' >> "$(DESTDIR)$(PREFIX)/$(folders_made)"
	@ln -sf libcornu.so.0 "$(DESTDIR)$(PREFIX)/$(LIBDIR)/libcornu.so"
	@if [ -z "$(DESTDIR)$(own)" ] && [ $$(id -u) = 0 ]; then ldconfig; fi
	@echo "installed Cornu $(version) in $(DESTDIR)$(PREFIX)"
	@if [ -z "$(DESTDIR)" ] && [ -n "$(own)" ]; then printf '%s\n' "$$own_prefix"; fi

# Removes these files, and the folders that install made and nobody else has filled.
uninstall:
	@for i in $(installed) $(LIBDIR)/libcornu.so; do \
	    rm -f "$(DESTDIR)$(PREFIX)/$${i##*:}"; \
	done
	@list="$(DESTDIR)$(PREFIX)/$(folders_made)"; \
	if [ -f "$$list" ]; then \
	    made=$$(sort -ru "$$list"); rm "$$list"; \
	    printf '%s\n' "$$made" | while read -r folder; do \
	        rmdir "$(DESTDIR)$$folder" 2>/dev/null || true; \
	    done; \
	fi
	@if [ -z "$(DESTDIR)$(own)" ] && [ $$(id -u) = 0 ]; then ldconfig; fi

# HTML of the public headers and of the pages, by Doxygen. A filter marks comments for it: the first one describes the
# file, one after a field that field; "/* ---- headings" are left out.
docs_pages = $(shell find * .packaging -name build -prune -o -name '*.md' -print)
define doxyfile
PROJECT_NAME           = Cornu
PROJECT_NUMBER         = $(version)
PROJECT_BRIEF          = "Keras in C"
OUTPUT_DIRECTORY       = $(BUILD)/docs
INPUT                  = $(filter %.h,$(headers)) $(addprefix $(CURDIR)/,$(docs_pages))
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

.PHONY: install uninstall docs
