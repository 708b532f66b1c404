/* seeds DIRECTORY: writes the first inputs of every target to DIRECTORY/TARGET/, as they are in tests/fuzz/corpora. */
#include "fuzz.h"

#include "nn/files.h"

#include <errno.h>
#include <sys/stat.h>

static const char *where;

static FILE *create(const char *target, const char *name) {
    char path[1200];
    snprintf(path, sizeof path, "%.1000s/%s", where, target);
    DEMAND(mkdir(path, 0777) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%.1000s/%s/%s", where, target, name);
    FILE *file = fopen(path, "wb");
    DEMAND_SAYING(file, "%s: cannot be written", path);
    return file;
}

static void put(const char *target, const char *name, const void *data, size_t size) {
    FILE *file = create(target, name);
    DEMAND(fwrite(data, 1, size, file) == size);
    DEMAND(fclose(file) == 0);
}

/* -- safetensors --------------------------------------------------------------------------------------------------- */

/* A file of weights, whole, and as a header to change: without its length, and NUL before the values. */
static void put_weights(const char *name) {
    enum { ROOM = 1 << 16, LENGTH_SIZE = 8 };
    static uint8_t data[ROOM];
    char open[64];
    FILE *file = fopen(fuzz_path(1), "rb");
    const size_t size = file ? fread(data, 1, sizeof data, file) : 0;
    DEMAND(file && fclose(file) == 0 && size > LENGTH_SIZE && size < ROOM);
    put("safetensors", name, data, size);
    const size_t length = (size_t)gr_load_little(data, LENGTH_SIZE);
    memmove(data, data + LENGTH_SIZE, length);
    data[length] = '\0'; /* the header moved up by more than this takes */
    memmove(data + length + 1, data + LENGTH_SIZE + length, size - LENGTH_SIZE - length);
    snprintf(open, sizeof open, "%s_header", name);
    put("safetensors", open, data, size - LENGTH_SIZE + 1);
}

static void put_model(const char *name, gr_gpt_config config) {
    const uint8_t text[] = "ab";
    gr_context *ctx = gr_context_new();
    const gr_tokenizer tokenizer = config.vocab == 256 ? gr_tokenizer_bytes() : gr_tokenizer_chars(text, 2);
    DEMAND_SAYING(gr_gpt_save(gr_gpt_new(ctx, config), &tokenizer, fuzz_path(1)), "%s", gr_error_message(ctx));
    put_weights(name);
    gr_context_free(ctx);
}

/* After a step, so that the moments are not 0. */
static void put_state(const char *name, gr_gpt_config config) {
    const int32_t ids[] = {0, 1}, targets[] = {1, 0};
    gr_context *ctx = gr_context_new();
    gr_gpt *gpt = gr_gpt_new(ctx, config);
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.beta1 = 0.9});
    gr_backward(gr_cross_entropy(gr_gpt_forward(gpt, (gr_tokens){ids, 1, 2}), (gr_tokens){targets, 1, 2}));
    gr_adamw_step(adamw, 0.01);
    const gr_resume at = {.step = 1, .rng = gr_rng_seed(7), .best = 0.5, .text = 100};
    DEMAND_SAYING(gr_state_save(gpt, adamw, at, fuzz_path(1)), "%s", gr_error_message(ctx));
    put_weights(name);
    gr_context_free(ctx);
}

static void write_safetensors(void) {
    const gr_gpt_config small = {.vocab = 2, .context = 2, .layers = 1, .heads = 1, .width = 2, .dropout = 0.1};
    gr_gpt_config other = small;
    put_model("model", small);
    put_state("state", small);
    other.bias = true, other.layers = 2, other.gelu = GR_GELU_ERF;
    put_model("bias", other);
    other = small, other.positions = GR_ROTARY, other.style = (gr_attention_style){GR_WINDOW, 1, 1, 1};
    put_model("rotary", other);
    other = small, other.vocab = 256, other.width = 1, other.style.kind = GR_LINEAR;
    put_model("bytes", other);
    other = small, other.style = (gr_attention_style){.kind = GR_SPARSE, .block = 1};
    put_model("sparse", other);
    static const char half[] =
        "{\"a\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},\"b\\u00e9\":{\"dtype\":\"BF16\","
        "\"shape\":[],\"data_offsets\":[4,6]},\"c\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[6,6]}}\0abcdef";
    put("safetensors", "types_header", half, sizeof half - 1);
}

/* -- The others ---------------------------------------------------------------------------------------------------- */

static void put_text(const char *target, const char *name, const char *text) { put(target, name, text, strlen(text)); }

static void write_config(void) {
    put_text("config", "numbers",
             "# a comment\nlayers = 2\nwidth=64\n  heads = 2 # two\nlr = 3e-3\nmin-lr=0\nbias = yes\n");
    put_text("config", "texts",
             "prompt = \"a \\\"b\\\" \\x41\\n\\t\\\\\" # here\nattend = plain # text\nvalidation = x#y\n");
    put_text("config", "choices",
             "\xef\xbb\xbf"
             "attention = window\nwindow = 3\nglobal=1\npositions = rotary\ngelu = erf\n");
    put_text("config", "preset", "preset = small\nsteps = 10\ndropout = 0.5\ntokenizer = bytes\r\n");
    put_text("config", "lists", "data = a\ndata = \"b c\"\nbytes = 0\nprofile = no\nquiet = yes\n");
    put_text("config", "wrong", "layers\n= 3\nwidht = 3\nwidth = 1e3\nprompt = \"a\n");
}

#define WORDS(target, name, text) put(target, name, text, sizeof(text) - 1)

static void write_options(void) {
    WORDS("options", "train",
          "\0--data\0a\0b\0--out\0o\0--layers\0"
          "2\0--lr=1e-2\0--bias\0--steps\0"
          "10");
    WORDS("options", "config", "\0--data\0a\0--out\0o\0--config\0@config\0--preset\0tiny\0--width=48");
    WORDS("options", "resume",
          "\0--resume\0@run\0--data\0a\0--steps\0"
          "20\0--seed\0"
          "7");
    WORDS("options", "sample",
          "\1--model\0m\0--prompt\0x\0--temperature\0"
          "0\0--top-k\0"
          "3\0--top-p=.5\0--stop\0.");
    WORDS("options", "eval",
          "\2--model\0m\0--data\0a\0b\0--validation-share\0.5\0--batch\0"
          "3");
    WORDS("options", "attend",
          "\3--model\0m\0--prompt-file\0-\0--layer\0"
          "1\0--head\0"
          "1\0--out\0d");
    WORDS("options", "info",
          "\5--config\0@config\0--vocab\0"
          "256\0--positions\0rotary\0--threads\0"
          "2");
    WORDS("options", "logits", "\6--model\0m\0--text\0t\0--out\0o");
    WORDS("options", "bounds",
          "\0--data\0a\0--out\0o\0--layers\0"
          "1000\0--lr\0"
          "10\0--clip\0"
          "0\0--dropout\0"
          "0");
    WORDS("options", "dropout_of_1",
          "\0--data\0a\0--out\0o\0--dropout\0"
          "1");
    WORDS("options", "beta_of_1",
          "\0--data\0a\0--out\0o\0--beta1\0"
          "1");
    WORDS("options", "rate_of_0",
          "\0--data\0a\0--out\0o\0--lr\0"
          "0");
    WORDS("options", "share_of_1",
          "\2--model\0m\0--data\0a\0--validation-share\0"
          "1");
    WORDS("options", "top_p_of_0",
          "\1--model\0m\0--top-p\0"
          "0");
    WORDS("options", "wrong",
          "\0--widht\0"
          "3\0--width\0x\0word");
}

/* Bytes of a formula: of all sizes, of many values. */
static void put_bytes(const char *target, const char *name, size_t size, uint64_t seed, int most) {
    uint8_t data[512];
    gr_rng rng = gr_rng_stream(gr_rng_seed(seed), GR_STREAM_USER);
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)gr_rng_below(&rng, (uint64_t)most);
    put(target, name, data, size);
}

static void write_drawn(const char *target, int count, const int *most) {
    char name[32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "drawn_%d", i);
        put_bytes(target, name, (size_t)(40 + 45 * (i % 8)), (uint64_t)i, most[i % 3]);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "seeds DIRECTORY\n");
        return EXIT_FAILURE;
    }
    where = argv[1];
    setenv("GRADUS_ISA", "reference", 1); /* the same bits on every machine */
    write_safetensors();
    write_config();
    write_options();
    write_drawn("corpus", 12, (const int[]){256, 4, 64});
    write_drawn("mask", 16, (const int[]){256, 8, 64});
    write_drawn("graph", 24, (const int[]){256, 16, 64});
    return EXIT_SUCCESS;
}
