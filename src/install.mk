# What `make install` puts where, `make uninstall` takes it away again, and the tarball of a release. Read by the Makefile.
PREFIX     = /usr/local
BINDIR     = $(PREFIX)/bin
LIBDIR     = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
MANDIR     = $(PREFIX)/share/man
INSTALL    = install
LIBRARIES  = gradus gradus64
PRECISION_gradus   = float
PRECISION_gradus64 = double

# Each file of a library that is installed in LIBDIR; the last three where the system has ELF.
files = lib$(1).a pkgconfig/$(1).pc $(if $(SHARED),lib$(1).so.$(VERSION) lib$(1).so.$(MAJOR) lib$(1).so)

$(LIBRARIES:%=$(B)/%.pc): $(B)/%.pc: src/gradus.pc.in src/tensor/context.h FORCE # PREFIX may be another one each time
	@mkdir -p $(@D)
	$(Q)sed -e 's|@NAME@|$*|; s|@REAL@|$(PRECISION_$*)|; s|@VERSION@|$(VERSION)|; s|@FLAGS@|$($(PRECISION_$*))|' \
	    -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@OPENMP@|$(OPENMP)|' $< > $@

install: all $(LIBRARIES:%=$(B)/%.pc)
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
	rm -f "$(DESTDIR)$(BINDIR)/gradus-lm" "$(DESTDIR)$(MANDIR)/man1/gradus-lm.1" "$(DESTDIR)$(MANDIR)/man3/gradus.3" \
	    $(foreach library,$(LIBRARIES),$(foreach file,$(call files,$(library)),"$(DESTDIR)$(LIBDIR)/$(file)")) \
	    $(foreach header,gradus.h $(HEADERS:%=gradus/%),"$(DESTDIR)$(INCLUDEDIR)/$(header)")
	rmdir $(foreach room,/tensor /autograd /nn,"$(DESTDIR)$(INCLUDEDIR)/gradus$(room)") "$(DESTDIR)$(INCLUDEDIR)/gradus" 2>/dev/null || :

# The last commit, byte for byte the same wherever it is packed.
dist:
	@[ -e .git ] || { echo "make dist packs a commit: it needs a git checkout" >&2; exit 1; }
	@mkdir -p $(B)
	git -c tar.umask=0022 archive --prefix=gradus-$(VERSION)/ -o $(B)/gradus-$(VERSION).tar HEAD
	gzip -9nf $(B)/gradus-$(VERSION).tar
	@git diff --quiet HEAD || echo "without what is not committed" >&2

.PHONY: install uninstall dist FORCE
