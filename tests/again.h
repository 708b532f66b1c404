/* Of a step that fails and is done again: the generators to put back, and the files that it must not leave open. */
#ifndef TESTS_AGAIN_H
#define TESTS_AGAIN_H

#include "gradus.h"

#include <dirent.h>

enum { AGAIN_LAYERS = 4 }; /* of a model, at most */

/* The caller's own, and those of the model's dropouts. */
typedef struct generators {
    gr_rng own, drop[AGAIN_LAYERS], last;
} generators;

/* gpt NULL, or refused: it has none. */
static inline generators generators_of(gr_rng own, const gr_gpt *gpt) {
    generators g = {.own = own};
    if (!gpt || !gpt->h) return g;
    g.last = gpt->drop.rng;
    for (int i = 0; i < gpt->config.layers && i < AGAIN_LAYERS; i++) g.drop[i] = gpt->h[i].drop.rng;
    return g;
}

static inline void put_back(generators g, gr_rng *own, gr_gpt *gpt) {
    *own = g.own;
    if (!gpt || !gpt->h) return;
    gpt->drop.rng = g.last;
    for (int i = 0; i < gpt->config.layers && i < AGAIN_LAYERS; i++) gpt->h[i].drop.rng = g.drop[i];
}

/* 0 where the system does not list them. */
static inline int open_files(void) {
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    while (list && readdir(list)) count++;
    if (list) closedir(list);
    return count;
}

#endif
