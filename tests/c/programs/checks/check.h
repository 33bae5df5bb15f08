/* Common code of the programs that check every result: they end at the first wrong one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

#define CHECK(truth)                                                                              \
    do {                                                                                          \
        if (!(truth)) {                                                                           \
            fprintf(stderr, "rank %d, line %d: not %s\n", rank, __LINE__, #truth);                \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                         \
        }                                                                                         \
    } while (0)
