/* Heat in a rod between 0 and 100 degrees: halos by Sendrecv, whose outer ends are PROC_NULL.
 *
 * ranks: 4
 * expected:
 *   after 60 steps:
 *      1.3   4.0   9.2  20.0  36.6  60.9  89.7
 *   as on one rank: yes
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define EACH 6
#define STEPS 60

static void relax(double *rod, double *next, int count) {
    for (int i = 1; i <= count; i++) next[i] = (rod[i - 1] + rod[i + 1]) / 2;
    memcpy(rod + 1, next + 1, count * sizeof(double));
}

int main(int argc, char **argv) {
    int rank, size;
    double mine[EACH + 2] = {0}, next[EACH + 2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    if (right == MPI_PROC_NULL) mine[EACH + 1] = 100;
    for (int step = 0; step < STEPS; step++) {
        MPI_Sendrecv(&mine[1], 1, MPI_DOUBLE, left, 0, &mine[EACH + 1], 1, MPI_DOUBLE, right, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&mine[EACH], 1, MPI_DOUBLE, right, 1, &mine[0], 1, MPI_DOUBLE, left, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        relax(mine, next, EACH);
    }
    int count = size * EACH, same = 1;
    double *all = calloc(count + 2, sizeof(double)), *alone = calloc(count + 2, sizeof(double));
    double *spare = calloc(count + 2, sizeof(double));
    MPI_Gather(mine + 1, EACH, MPI_DOUBLE, all + 1, EACH, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        alone[count + 1] = 100;
        for (int step = 0; step < STEPS; step++) relax(alone, spare, count);
        printf("after %d steps:\n", STEPS);
        for (int i = 6; i <= count; i += 3) printf("%6.1f", all[i]);
        for (int i = 1; i <= count; i++) same &= all[i] == alone[i];
        printf("\nas on one rank: %s\n", same ? "yes" : "no");
    }
    free(all), free(alone), free(spare);
    MPI_Finalize();
    return 0;
}
