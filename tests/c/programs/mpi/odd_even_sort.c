/* Odd-even transposition: neighbours merge their sorted blocks, the left one keeps the small half.
 *
 * ranks: 4
 * expected:
 *   11 17 20 20 22 31 31 37
 *   39 40 41 42 43 44 49 52
 *   52 53 55 56 61 65 68 74
 *   78 80 81 84 84 86 88 88
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#define N 8

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(int argc, char **argv) {
    int rank, size, both[2 * N], mine[N];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned random = 7;
    for (int i = 0; i < (rank + 1) * N; i++) {
        random = random * 1103515245u + 12345u;
        mine[i % N] = random / 65536 % 90;
    }
    qsort(mine, N, sizeof(int), ascending);
    for (int phase = 0; phase < size; phase++) {
        int partner = (rank + phase) % 2 ? rank - 1 : rank + 1;
        if (partner < 0 || partner >= size) continue;
        MPI_Sendrecv(mine, N, MPI_INT, partner, phase, both, N, MPI_INT, partner, phase,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) both[N + i] = mine[i];
        qsort(both, 2 * N, sizeof(int), ascending);
        for (int i = 0; i < N; i++) mine[i] = both[partner > rank ? i : N + i];
    }
    int *all = malloc(size * sizeof mine);
    MPI_Gather(mine, N, MPI_INT, all, N, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < size * N; i++) printf("%d%s", all[i], i % N < N - 1 ? " " : "\n");
    free(all);
    MPI_Finalize();
    return 0;
}
