/* Common code of the programs of these tests: they end at the first failed check. */
#include <inttypes.h>
#include <sfm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(truth)                                                                   \
    do {                                                                               \
        if (!(truth)) {                                                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #truth, sfm_error_text()); \
            exit(9);                                                                   \
        }                                                                              \
    } while (0)

#define DONE(call) CHECK((call) == SFM_OK)
