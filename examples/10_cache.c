/* Lesson 10, second part: a Transformer written out, and the cache that makes it write fast. */
#include <gradus.h>

#include <string.h>
#include <time.h>

enum { T = 128, LAYERS = 2, HEADS = 4, C = 128, V = 65, SEED = 10 };

/* What a layer remembers of the tokens before: keys and values (1, H, past, D); NULL at first. */
typedef struct cache {
    gr_tensor *k, *v;
} cache;

static gr_tensor *split_heads(gr_tensor *x) { /* (1, t, C) -> (1, H, t, D) */
    return gr_transpose(gr_reshape(x, GR_SHAPE(1, gr_dim(x, 1), HEADS, C / HEADS)), 1, 2);
}

static gr_tensor *join(gr_tensor *past, gr_tensor *x) {
    return past ? gr_concat((gr_tensor *[]){past, x}, 2, 2) : x; /* (1, H, past + t, D) */
}

/* x + attention(norm(x)), then x + mlp(norm(x)), for t tokens that follow those in the cache. */
static gr_tensor *block(const gr_block_layer *b, gr_tensor *x, cache *kv) {
    gr_tensor *part[3];
    gr_split(gr_linear_forward(&b->attn.c_attn, gr_layernorm_forward(&b->ln_1, x)), -1, 3, part); /* (1, t, C) each */
    gr_tensor *q = split_heads(part[0]);                                                          /* (1, H, t, D) */
    kv->k = join(kv->k, split_heads(part[1]));
    kv->v = join(kv->v, split_heads(part[2]));
    gr_tensor *y = gr_attention(q, kv->k, kv->v, (gr_attention_options){.mask = gr_mask_causal()}); /* (1, H, t, D) */
    y = gr_reshape(gr_transpose(y, 1, 2), GR_SHAPE(1, -1, C));                                      /* (1, t, C) */
    x = gr_add(x, gr_linear_forward(&b->attn.c_proj, y));
    return gr_add(x, gr_mlp_forward(&b->mlp, gr_layernorm_forward(&b->ln_2, x)));
}

/* Logits (1, t, V) of ids[past ... past + t). */
static gr_tensor *model(const gr_gpt *gpt, const int32_t *ids, int64_t past, int64_t t, cache *kv) {
    gr_tensor *x = gr_embedding_forward(&gpt->wte, (gr_tokens){ids + past, 1, t}); /* what: (1, t, C) */
    x = gr_add(x, gr_slice(gpt->wpe.weight, 0, past, past + t, 1));                /* where: + (t, C) */
    for (int i = 0; i < LAYERS; i++) x = block(&gpt->h[i], x, &kv[i]);
    return gr_linear(gr_layernorm_forward(&gpt->ln_f, x), gpt->wte.weight, NULL);
}

/* The library's logits against the above, all tokens at once and one by one. */
static void compare(gr_gpt *gpt, const int32_t *ids) {
    static gr_real library[T][V], at_once[T][V], one[V];
    int equal = 0;
    cache all[LAYERS] = {{NULL, NULL}}, kept[LAYERS] = {{NULL, NULL}};
    gr_to_array(gr_gpt_forward(gpt, (gr_tokens){ids, 1, T}), library[0]);
    gr_to_array(model(gpt, ids, 0, T, all), at_once[0]);
    for (int i = 0; i < T; i++) {
        gr_to_array(model(gpt, ids, i, 1, kept), one);
        equal += memcmp(one, library[i], sizeof one) == 0;
    }
    printf("logits of %d tokens, the bits of gr_gpt_forward:\n", T);
    printf("  all at once: %s\n", memcmp(library, at_once, sizeof library) == 0 ? "yes" : "no");
    printf("  one by one, with the cache: %d of %d\n", equal, T);
    gr_context_reset(gpt->ctx);
}

static double seconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The likeliest token, time and again: from the whole text each time, and by gr_gpt_generate. */
static void write(gr_gpt *gpt) {
    static int32_t slow[T], fast[T];
    double begin = seconds();
    for (int n = 1; n < T && gr_ok(gpt->ctx); n++, gr_context_reset(gpt->ctx)) {
        gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){slow, 1, n}); /* (1, n, V) */
        slow[n] = (int32_t)gr_sample(gr_select(gr_select(logits, 0, 0), 0, n - 1), (gr_sampling){0}, NULL);
    }
    const double whole = seconds() - begin;
    begin = seconds();
    gr_gpt_generate(gpt, fast, 1, (gr_generation){.total = T});
    const double cached = seconds() - begin;
    printf("%d tokens written without and with the cache are the same: %s\n", T - 1,
           memcmp(slow, fast, sizeof slow) == 0 ? "yes" : "no");
    printf("time: without %.0f ms, with %.0f ms: %.0f times as fast\n", 1e3 * whole, 1e3 * cached, whole / cached);
}

int main(void) {
    static int32_t ids[T];
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(SEED);
    gr_gpt *gpt = gr_gpt_new(
        ctx, (gr_gpt_config){.vocab = V, .context = T, .layers = LAYERS, .heads = HEADS, .width = C, .seed = SEED});
    for (int i = 0; i < T; i++) ids[i] = (int32_t)gr_rng_below(&rng, V);
    gr_no_grad_begin(ctx);
    compare(gpt, ids);
    write(gpt);
    gr_no_grad_end(ctx);
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
