/* The corpus of lesson 8: sentences of 16 words whose last one depends on what "it" stands for. Ids are numbers of
 * words. */
#ifndef SENTENCES_H
#define SENTENCES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { KIND = 10, HOW = 4, T = 15 /* words read; one more is to be said */ };
enum { THE, DID, NOT, CROSS, TEMPT, BECAUSE, IT, WAS, TOO, COMMA, AND, LIVING, PLACE = LIVING + KIND };
enum { VERB = PLACE + KIND, ADJECTIVE = VERB + 2 * KIND, V = ADJECTIVE + 2 * HOW };
/* Living things, places, their verbs, what the living can be, what places can be. */
static const char words[V][9] = {
    "the",     "did",    "not",    "cross",  "tempt",    "because", "it",     "was",    "too",     ",",
    "and",     "animal", "dog",    "cat",    "horse",    "cow",     "duck",   "sheep",  "frog",    "pig",
    "wolf",    "street", "road",   "river",  "lake",     "field",   "bridge", "hill",   "valley",  "desert",
    "swamp",   "sleeps", "barks",  "purrs",  "neighs",   "moos",    "quacks", "bleats", "croaks",  "grunts",
    "howls",   "echoes", "winds",  "flows",  "glitters", "blooms",  "sways",  "towers", "narrows", "burns",
    "bubbles", "tired",  "hungry", "scared", "weak",     "wide",    "steep",  "muddy",  "dark"};

/* "the animal did not cross the street because it was too tired , and it sleeps", or, turned round, "the street did not
 * tempt the animal because ...". Returns the place of the noun that "it" stands for. */
static inline int sentence(int32_t s[T + 1], int living, int place, int turned, int how) {
    const bool is_place = how >= HOW;
    const int32_t a = LIVING + living, b = PLACE + place, verb = VERB + (is_place ? KIND + place : living);
    const int32_t all[T + 1] = {THE, turned ? b : a,  DID,     NOT, turned ? TEMPT : CROSS,
                                THE, turned ? a : b,  BECAUSE, IT,  WAS,
                                TOO, ADJECTIVE + how, COMMA,   AND, IT,
                                verb};
    memcpy(s, all, sizeof all);
    return is_place == turned ? 1 : 6;
}

/* A fifth of the pairs, "animal" and "street" among them, is kept from training. */
static inline bool unseen(int living, int place) { return (living + 3 * place) % 5 == 0; }

#endif
