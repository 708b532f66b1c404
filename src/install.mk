# What `make install` puts where, `make uninstall` takes it away again, and the tarball of a release. Read by the Makefile.
PREFIX     = /usr/local
BINDIR     = $(PREFIX)/bin
LIBDIR     = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
MANDIR     = $(PREFIX)/share/man
INSTALL    = install
LIBRARIES  = gradus gradus64
REAL_gradus    = float
REAL_gradus64  = double
FLAGS_gradus64 = -DGR_DOUBLE

# Every file that is installed; the last three of a library where the system has ELF.
files     = lib$(1).a pkgconfig/$(1).pc $(if $(SHARED),lib$(1).so.$(VERSION) lib$(1).so.$(MAJOR) lib$(1).so)
INSTALLED = "$(DESTDIR)$(BINDIR)/gradus-lm" "$(DESTDIR)$(MANDIR)/man1/gradus-lm.1" "$(DESTDIR)$(MANDIR)/man3/gradus.3" \
            $(foreach library,$(LIBRARIES),$(foreach file,$(call files,$(library)),"$(DESTDIR)$(LIBDIR)/$(file)")) \
            $(foreach header,gradus.h $(HEADERS:%=gradus/%),"$(DESTDIR)$(INCLUDEDIR)/$(header)")
# What pkg-config is told is read in other directories than this, and an empty one would be /.
SIGNS        = " $$ ` \ # the shell reads them, also between quotes
PLACES       = PREFIX BINDIR LIBDIR INCLUDEDIR MANDIR
check_places = $(foreach name,$(PLACES),$(if $(filter /%,$(firstword $($(name)))),,$(error $(name)=$($(name)) must be an absolute path))) \
            $(foreach name,$(PLACES) DESTDIR,$(foreach sign,$(SIGNS),$(if $(findstring $(sign),$($(name))),\
            $(error $(name)=$($(name)) must be a path without $(sign)))))

$(LIBRARIES:%=$(B)/%.pc): $(B)/%.pc: FORCE # PREFIX may be another one each time; # begins a comment there
	$(check_places)
	@mkdir -p $(@D)
	$(Q)printf '%s\n' "prefix=$(PREFIX)" "libdir=$(LIBDIR)" "includedir=$(INCLUDEDIR)" 'Name: $*' 'Version: $(VERSION)' \
	    'Description: tensors, reverse-mode differentiation and a small neural-network library, in $(REAL_$*)' \
	    'Cflags: -I"$${includedir}" $(FLAGS_$*)' 'Libs: -L"$${libdir}" -l$*' 'Libs.private: -lm $(OPENMP)' | \
	    sed 's/#/\\#/g' > $@

# Where a directory has the name of a file, install and ln would put theirs inside.
install: all $(LIBRARIES:%=$(B)/%.pc)
	for f in $(INSTALLED); do [ ! -d "$$f" ] || { echo "$$f: a directory is in the way" >&2; exit 1; }; done
	$(INSTALL) -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(MANDIR)/man1" "$(DESTDIR)$(MANDIR)/man3" \
	    $(foreach room,tensor autograd nn,"$(DESTDIR)$(INCLUDEDIR)/gradus/$(room)")
	for h in $(HEADERS); do $(INSTALL) -m 644 "src/$$h" "$(DESTDIR)$(INCLUDEDIR)/gradus/$$h" || exit 1; done
	echo '#include "gradus/gradus.h"' > "$(DESTDIR)$(INCLUDEDIR)/gradus.h"
	chmod 644 "$(DESTDIR)$(INCLUDEDIR)/gradus.h"
	$(INSTALL) -m 755 $(B)/lm "$(DESTDIR)$(BINDIR)/gradus-lm"
	$(INSTALL) -m 644 $(LIBRARIES:%=$(B)/lib%.a) "$(DESTDIR)$(LIBDIR)"
	$(INSTALL) -m 644 $(LIBRARIES:%=$(B)/%.pc) "$(DESTDIR)$(LIBDIR)/pkgconfig"
	$(INSTALL) -m 644 docs/man/gradus.3 "$(DESTDIR)$(MANDIR)/man3"
	$(INSTALL) -m 644 docs/man/gradus-lm.1 "$(DESTDIR)$(MANDIR)/man1"
	for l in $(if $(SHARED),$(LIBRARIES)); do \
	    $(INSTALL) -m 755 $(B)/lib$$l.so.$(VERSION) "$(DESTDIR)$(LIBDIR)" && \
	    ln -sf lib$$l.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/lib$$l.so.$(MAJOR)" && \
	    ln -sf lib$$l.so.$(MAJOR) "$(DESTDIR)$(LIBDIR)/lib$$l.so" || exit 1; done

uninstall:
	$(check_places)
	rm -f $(INSTALLED)
	rmdir $(foreach room,/tensor /autograd /nn,"$(DESTDIR)$(INCLUDEDIR)/gradus$(room)") "$(DESTDIR)$(INCLUDEDIR)/gradus" 2>/dev/null || :

# The last commit, byte for byte the same wherever it is packed.
dist:
	@[ -e .git ] || { echo "make dist packs a commit: it needs a git checkout" >&2; exit 1; }
	@mkdir -p $(B)
	git -c tar.umask=0022 -c core.autocrlf=false -c core.eol=lf archive --prefix=gradus-$(VERSION)/ -o $(B)/gradus-$(VERSION).tar HEAD
	gzip -9nf $(B)/gradus-$(VERSION).tar
	@git diff --quiet HEAD || echo "without what is not committed" >&2

.PHONY: install uninstall dist FORCE
