# make deb: Debian packages of what make has built, in $(BUILD)/deb, as any user. `make install`
# fills a folder, debhelper divides it by .packaging/debian. There is a package for MPI if there are
# plugins for it, and one for Python if there is nn/python/cornu. Versions are those of
# device/version.h, and the first of .packaging/debian/changelog, which says what changed for users.
# DEBFULLNAME and DEBEMAIL, as for Debian's own tools, name who makes them.
#
#   make deb-symbols    for a new version: lists the functions of libcornu.so, with the version that
#                       each came in, in .packaging/debian/libcornu0.symbols. If one of an earlier
#                       version is gone, make deb ends with an error: programs would not start
#   make check-packages installs them in a bare root, uses them and removes them: as root, with
#                       debootstrap and a mirror, minutes; and the commands of its page in another

deb_needs := dpkg-buildpackage:dpkg-dev dh:debhelper dh_python3:dh-python

deb      = $(BUILD)/deb
deb_tree = $(deb)/cornu
deb_root = $(abspath $(deb))/root
deb_who  = $(or $(DEBFULLNAME),Cornu maintainers) <$(or $(DEBEMAIL),maintainers@cornu.example)>
deb_mpi  = $(if $(strip $(mpi_plugins)),,pkg.cornu.nompi)
deb_modules = $(patsubst nn/python/%,%,$(shell find nn/python/cornu -name '*.py' 2>/dev/null))
deb_python  = $(if $(deb_modules),,pkg.cornu.nopython)

deb: deps-deb
	$(again) deb-root
	@rm -rf $(deb_tree) $(deb)/*.*deb
	@mkdir -p $(deb_tree) && cp -R .packaging/debian $(deb_tree)/
	@$(deb_symbols) > $(deb_tree)/debian/libcornu0.symbols
	@sed -i 's/@MAINTAINER@/$(deb_who)/' $(deb_tree)/debian/control
	@sed -i '0,/^ -- /s/^ -- .*>/ -- $(deb_who)/' $(deb_tree)/debian/changelog
	$(call say,deb,$(deb))cd $(deb_tree) && env -u MAKEFLAGS -u MAKELEVEL \
	    DEB_BUILD_PROFILES='$(deb_mpi) $(deb_python)' \
	    HDF5_PACKAGE='$(call package_of,$(hdf5_name))' \
	    MICROHTTPD_PACKAGE='$(call package_of,$(http_name))' \
	    dpkg-buildpackage -b -d -uc -us > ../log 2>&1 || { tail -n 30 ../log; exit 1; }
	@[ -z '$(deb_mpi)' ] || \
	    echo 'no package libcornu-mpi0: no plugin for MPI was built, see make deps-mpi'
	@[ -z '$(deb_python)' ] || echo 'no package python3-cornu: there is no nn/python/cornu'
	@ls -1 $(deb)/*.deb

# The package that a library is in, if one is.
package_of = $(if $(1),$(shell dpkg-query -S '*/$(1)' 2>/dev/null | head -n 1 | cut -d : -f 1))

deb-root:
	@rm -rf $(deb_root) && mkdir -p $(deb_root)
	@$(MAKE) --no-print-directory install STRIP= PREFIX=/usr DESTDIR=$(deb_root) written=$(deb) \
	    LIBDIR=lib/$$(dpkg-architecture -qDEB_HOST_MULTIARCH)
	@for file in $(deb_modules); do \
	    install -D -m 644 nn/python/$$file \
	        $(deb_root)/usr/lib/python3/dist-packages/$$file || exit 1; \
	done

# Each function with the version that it came in: this one, unless it is listed with an earlier one.
# Functions of an earlier version stay listed, so that dpkg-gensymbols misses those that are gone.
deb_list = .packaging/debian/libcornu0.symbols
define deb_symbols
nm --dynamic --defined-only $(BUILD)/libcornu.so | awk -v now='$(version)' ' \
    BEGIN { print "libcornu.so.0 libcornu0 #MINVER#\n* Build-Depends-Package: libcornu-dev" } \
    FILENAME != "-" { if (/@Base/ && $$2 != now) since[$$1] = $$2; next } \
    !($$3 "@Base" in since) { since[$$3 "@Base"] = now } \
    END { for (name in since) print " " name " " since[name] | "LC_ALL=C sort" }' $(deb_list) -
endef

deb-symbols: $(BUILD)/libcornu.so
	@$(deb_symbols) > $(BUILD)/symbols && mv $(BUILD)/symbols $(deb_list)

check-packages: deb
	@$(call find_needs,debootstrap:debootstrap)
	@bash tests/packages/check.sh $(BUILD)
	@bash tests/packages/check_readme.sh $(BUILD)

deps-deb: ; @$(call find_needs,$(needs) $(deb_needs))

.PHONY: deb deb-root deb-symbols deps-deb check-packages
