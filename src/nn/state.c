/* A run in a file: tensors "NAME", "m.NAME" and "v.NAME" for each parameter, and as metadata the model's configuration,
 * optimiser and optimiser_step, step, rng, best, text (may be missing), and dropout.0 ... dropout.LAYERS: a generator
 * is "seed stream counter", best the bits of a double in hexadecimal, so that no number depends on a locale or is
 * rounded. */
#include "checkpoint.h"
#include "configuration.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"", "m.", "v."}; /* of a parameter's tensors */
enum { KINDS = 3 };

typedef struct state {
    gr_context *ctx;
    gr_gpt *gpt;
    gr_adam_state adam;
    int64_t drops; /* generators of dropout */
} state;

/* The tensor of a kind of parameter i. */
static gr_tensor *tensor_of(const state *s, int kind, int i) {
    if (kind == 0) return gr_parameter_at(s->ctx, s->gpt->first + i);
    return kind == 1 ? s->adam.m[i] : s->adam.v[i];
}

static const char *name_of(const state *s, int kind, int i) {
    const char *name = gr_name(gr_parameter_at(s->ctx, s->gpt->first + i));
    const size_t room = strlen(name) + sizeof "m.";
    char *text = gr_alloc(s->ctx, false, room);
    if (text) snprintf(text, room, "%s%s", kinds[kind], name);
    return text ? text : "";
}

static gr_dropout_layer *drop_of(const state *s, int64_t i) { return i == 0 ? &s->gpt->drop : &s->gpt->h[i - 1].drop; }

/* Are they of one run? */
static bool begin(state *s, gr_gpt *gpt, gr_adamw *adamw, const char *path) {
    if (!gpt || !gr_ok(gpt->ctx)) return false;
    *s = (state){.ctx = gpt->ctx, .gpt = gpt, .adam = gr_adamw_state(adamw), .drops = gpt->config.layers + 1};
    if (!path)
        gr_fail(s->ctx, "state", "path is NULL");
    else if (!adamw)
        gr_fail(s->ctx, path, "the optimiser is NULL");
    else if (!gr_check_made(s->ctx, path, "the model", gpt->h) ||
             !gr_check_made(s->ctx, path, "the optimiser", s->adam.count >= 0))
        return false;
    else if (gpt->first != 0 || gpt->count != s->adam.count || gpt->count != gr_parameter_count(s->ctx))
        gr_fail(s->ctx, path, "the optimiser has %d parameters, the model %d of %d", s->adam.count, gpt->count,
                gr_parameter_count(s->ctx));
    return gr_ok(s->ctx);
}

/* -- Save ---------------------------------------------------------------------------------------------------------- */

static const char *generator_text(gr_context *ctx, gr_rng rng) {
    return gr_text(ctx, "%" PRIu64 " %" PRIu64 " %" PRIu64, rng.seed, rng.stream, rng.counter);
}

enum { OWN_NOTES = 6 };

static void write_notes(const state *s, gr_resume at, gr_note *note) {
    uint64_t best;
    memcpy(&best, &at.best, sizeof best);
    gr_configuration_write(s->ctx, s->gpt->config, note);
    note += GR_CONFIGURATION_NOTES;
    *note++ = (gr_note){"optimiser", s->adam.name};
    *note++ = (gr_note){"optimiser_step", gr_text(s->ctx, "%" PRId64, *s->adam.step)};
    *note++ = (gr_note){"step", gr_text(s->ctx, "%" PRId64, at.step)};
    *note++ = (gr_note){"rng", generator_text(s->ctx, at.rng)};
    *note++ = (gr_note){"best", gr_text(s->ctx, "%016" PRIx64, best)};
    *note++ = (gr_note){"text", gr_text(s->ctx, "%" PRId64, at.text)};
    for (int64_t i = 0; i < s->drops; i++)
        *note++ = (gr_note){gr_text(s->ctx, "dropout.%" PRId64, i), generator_text(s->ctx, drop_of(s, i)->rng)};
}

bool gr_state_save(gr_gpt *gpt, gr_adamw *adamw, gr_resume at, const char *path) {
    state s;
    if (!begin(&s, gpt, adamw, path)) return false;
    const size_t notes = GR_CONFIGURATION_NOTES + OWN_NOTES + (size_t)s.drops, entries = KINDS * (size_t)gpt->count;
    gr_note *note = gr_alloc_array(s.ctx, false, (int64_t)notes, sizeof *note);
    gr_safetensors_entry *entry = gr_alloc_array(s.ctx, false, (int64_t)entries, sizeof *entry);
    if (!note || !entry) return false;
    write_notes(&s, at, note);
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < gpt->count; i++)
            entry[kind * gpt->count + i] = (gr_safetensors_entry){name_of(&s, kind, i), tensor_of(&s, kind, i)};
    return gr_safetensors_write(s.ctx, path, (gr_safetensors_content){note, notes, entry, entries});
}

/* -- Load ---------------------------------------------------------------------------------------------------------- */

/* Was it saved from a model and an optimiser like these? */
static bool check_configuration(const gr_safetensors *in, const state *s) {
    gr_note own[GR_CONFIGURATION_NOTES + 1];
    gr_configuration_write(s->ctx, s->gpt->config, own);
    own[GR_CONFIGURATION_NOTES] = (gr_note){"optimiser", s->adam.name};
    for (int i = 0; i <= GR_CONFIGURATION_NOTES && gr_ok(s->ctx); i++) {
        const char *stored = gr_note_text(in, own[i].key);
        if (gr_ok(s->ctx) && strcmp(stored, own[i].value) != 0)
            gr_fail(s->ctx, in->path, "%s is %.40s in the file, %s in the run", own[i].key,
                    gr_safetensors_show(in, stored), own[i].value);
    }
    return gr_ok(s->ctx);
}

/* Digits in a base, and what follows them; false for none or too many. */
static bool scan_digits(const char **at, int base, uint64_t *out) {
    char *end;
    errno = 0;
    if (!strchr("0123456789abcdef", **at) || !**at) return false;
    *out = strtoull(*at, &end, base);
    const bool some = end != *at && errno == 0;
    *at = end;
    return some;
}

static gr_rng read_generator(const gr_safetensors *in, const char *key) {
    const char *text = gr_note_text(in, key), *at = text;
    gr_rng rng = {0, 0, 0};
    const bool right = scan_digits(&at, 10, &rng.seed) && *at++ == ' ' && scan_digits(&at, 10, &rng.stream) &&
                       *at++ == ' ' && scan_digits(&at, 10, &rng.counter) && !*at;
    if (gr_ok(in->ctx) && !right)
        gr_fail(in->ctx, in->path, "metadata: %s is \"%.40s\"; it must be seed, stream and counter", key,
                gr_safetensors_show(in, text));
    return rng;
}

static gr_resume read_place(const gr_safetensors *in) {
    gr_resume at = {.step = gr_note_number(in, "step", 0, INT64_MAX), .rng = read_generator(in, "rng")};
    if (gr_safetensors_note(in, "text")) at.text = gr_note_number(in, "text", 0, INT64_MAX);
    const char *text = gr_note_text(in, "best"), *digits = text;
    uint64_t bits = 0;
    if (gr_ok(in->ctx) && !(scan_digits(&digits, 16, &bits) && digits - text == 16 && !*digits))
        gr_fail(in->ctx, in->path, "metadata: best is \"%.40s\"; it must be the 16 hexadecimal digits of a double",
                gr_safetensors_show(in, text));
    memcpy(&at.best, &bits, sizeof bits);
    if (gr_ok(in->ctx) && !(at.best >= -DBL_MAX)) gr_fail(in->ctx, in->path, "metadata: best is no loss: %g", at.best);
    return at;
}

/* The file's tensor, in memory of its own: nothing changes before all of them are there. */
static gr_tensor *stage(const gr_safetensors *in, const char *name, gr_shape wanted) {
    gr_stored *stored = gr_safetensors_find(in, name);
    if (!gr_ok(in->ctx)) return gr_inert(in->ctx);
    if (!stored) gr_fail(in->ctx, in->path, "%s %s is missing", name, gr_show_shape(in->ctx, wanted));
    gr_tensor *x = gr_new(in->ctx, in->path, false, wanted);
    if (gr_ok(in->ctx)) gr_safetensors_read(in, stored, x);
    return x;
}

static bool stage_all(const gr_safetensors *in, const state *s, gr_tensor **staged) {
    const size_t count = (size_t)s->gpt->count;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < count && gr_ok(s->ctx); i++)
            staged[(size_t)kind * count + i] =
                stage(in, name_of(s, kind, (int)i), gr_shape_of(tensor_of(s, kind, (int)i)));
    if (gr_ok(s->ctx) && in->tensors != KINDS * count)
        gr_fail(s->ctx, in->path, "%zu tensors, the run has %zu", in->tensors, KINDS * count);
    return gr_ok(s->ctx);
}

static void put_back(const state *s, gr_tensor *const *staged, const gr_rng *rng, int64_t step) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < s->gpt->count; i++) {
            gr_tensor *x = tensor_of(s, kind, i);
            memcpy(x->data, staged[kind * s->gpt->count + i]->data, (size_t)gr_numel(x) * sizeof(gr_real));
        }
    for (int64_t i = 0; i < s->drops; i++) drop_of(s, i)->rng = rng[i];
    *s->adam.step = step;
}

static bool read_state(const gr_safetensors *in, const state *s, gr_resume *at) {
    if (!check_configuration(in, s)) return false;
    gr_tensor **staged = gr_alloc_array(s->ctx, false, (int64_t)KINDS * s->gpt->count, sizeof *staged);
    gr_rng *rng = gr_alloc_array(s->ctx, false, s->drops, sizeof *rng);
    if (!staged || !rng) return false;
    const gr_resume place = read_place(in);
    const int64_t step = gr_note_number(in, "optimiser_step", 0, INT64_MAX / 2);
    for (int64_t i = 0; i < s->drops; i++) rng[i] = read_generator(in, gr_text(s->ctx, "dropout.%" PRId64, i));
    if (!gr_ok(s->ctx) || !stage_all(in, s, staged)) return false;
    put_back(s, staged, rng, step);
    if (at) *at = place;
    return true;
}

bool gr_state_load(gr_gpt *gpt, gr_adamw *adamw, gr_resume *at, const char *path) {
    state s;
    gr_safetensors in;
    if (!begin(&s, gpt, adamw, path) || !gr_safetensors_open(s.ctx, path, &in)) return false;
    const bool ok = read_state(&in, &s, at);
    gr_safetensors_close(&in);
    return ok;
}
