/* Collectives with parts of different sizes, some of them empty, with gaps between them.
 *
 * ranks: 4
 * expected:
 *   gathered: . 10 . 20 20 . 30 30 30
 *   scattered: 0 wrong
 *   all gathered: 0 wrong
 *   all to all: 0 wrong
 *   reduced and scattered: 0 wrong
 *   all to all with types: 0 wrong
 */
#include <mpi.h>
#include <stdio.h>

static int rank, size;

static void report(const char *what, int wrong) {
    int all;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %d wrong\n", what, all);
}

int main(int argc, char **argv) {
    int wrong = 0, counts[4], starts[4], length = 0, mine[8], in[32], out[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 4) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int r = 0; r < size; r++) { /* r elements of rank r, one place before each part is free */
        counts[r] = r;
        starts[r] = length + (r > 0);
        length = starts[r] + r;
    }
    for (int i = 0; i < 8; i++) mine[i] = 10 * rank;
    for (int i = 0; i < 32; i++) in[i] = -1;
    MPI_Gatherv(mine, rank, MPI_INT, in, counts, starts, MPI_INT, 2, MPI_COMM_WORLD);
    if (rank == 2) MPI_Send(in, length, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(in, length, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("gathered:");
        for (int i = 0; i < length; i++) in[i] < 0 ? printf(" .") : printf(" %d", in[i]);
        printf("\n");
    }
    for (int i = 0; i < 32; i++) out[i] = 100 + i, in[i] = -1;
    MPI_Scatterv(out, counts, starts, MPI_INT, mine, rank, MPI_INT, 1, MPI_COMM_WORLD);
    for (int i = 0; i < rank; i++) wrong += mine[i] != 100 + starts[rank] + i;
    report("scattered", wrong);
    for (int i = 0; i < 8; i++) mine[i] = 10 * rank + i;
    MPI_Allgatherv(mine, rank, MPI_INT, in, counts, starts, MPI_INT, MPI_COMM_WORLD);
    wrong = in[0] != -1;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < r; i++) wrong += in[starts[r] + i] != 10 * r + i;
    report("all gathered", wrong);
    /* Rank s sends r elements to rank r. */
    int same[4] = {rank, rank, rank, rank}, places[4] = {0, 5, 10, 15}, bytes[4] = {0, 20, 40, 60};
    for (int i = 0; i < 32; i++) out[i] = 100 * rank + i, in[i] = -1;
    MPI_Alltoallv(out, counts, starts, MPI_INT, in, same, places, MPI_INT, MPI_COMM_WORLD);
    wrong = in[rank] != -1;
    for (int s = 0; s < size; s++)
        for (int i = 0; i < rank; i++) wrong += in[5 * s + i] != 100 * s + starts[rank] + i;
    report("all to all", wrong);
    for (int i = 0; i < 32; i++) out[i] = i, in[i] = -1;
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong = in[rank] != -1;
    for (int i = 0; i < rank; i++) wrong += in[i] != size * (rank * (rank - 1) / 2 + i);
    report("reduced and scattered", wrong);
    MPI_Datatype ints[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT}, pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    int ones[4] = {1, 1, 1, 1}, twos[4] = {2, 2, 2, 2};
    MPI_Datatype pairs[4] = {pair, pair, pair, pair};
    for (int i = 0; i < 32; i++) out[i] = 100 * rank + i, in[i] = -1;
    MPI_Alltoallw(out, twos, bytes, ints, in, ones, bytes, pairs, MPI_COMM_WORLD);
    wrong = 0;
    for (int s = 0; s < size; s++)
        for (int i = 0; i < 2; i++) wrong += in[5 * s + i] != 100 * s + 5 * rank + i;
    report("all to all with types", wrong);
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
