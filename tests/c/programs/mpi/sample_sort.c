/* Sample sort: splitters from everybody's samples, then all elements to their owner by Alltoallv.
 *
 * ranks: 4
 * arguments: 2000
 * expected:
 *   8000 elements, sum kept: yes
 *   sorted on each rank and between ranks: yes
 *   no rank has more than half: yes
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int rank, size, n = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned *mine = malloc(n * sizeof *mine), random = 12345u * (rank + 1), sums[2] = {0, 0}, all[2];
    unsigned samples[size], splitters[size * size];
    for (int i = 0; i < n; i++) sums[0] += mine[i] = (random = random * 1664525u + 1013904223u) >> 4;
    qsort(mine, n, sizeof *mine, ascending);
    for (int i = 0; i < size; i++) samples[i] = mine[i * n / size];
    MPI_Allgather(samples, size, MPI_UNSIGNED, splitters, size, MPI_UNSIGNED, MPI_COMM_WORLD);
    qsort(splitters, size * size, sizeof *splitters, ascending);
    int to[size], to_at[size], from[size], from_at[size], count = 0;
    for (int r = 0, i = 0; r < size; r++) {
        to_at[r] = i;
        while (i < n && (r == size - 1 || mine[i] < splitters[(r + 1) * size])) i++;
        to[r] = i - to_at[r];
    }
    MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) from_at[r] = count, count += from[r];
    unsigned *got = malloc((count + 1) * sizeof *got);
    MPI_Alltoallv(mine, to, to_at, MPI_UNSIGNED, got, from, from_at, MPI_UNSIGNED, MPI_COMM_WORLD);
    qsort(got, count, sizeof *got, ascending);
    for (int i = 0; i < count; i++) sums[1] += got[i];
    unsigned ends[2] = {got[0], got[count - 1]}, *borders = malloc(size * sizeof ends);
    int counts[size], total = 0, sorted = 1, most = 0;
    MPI_Reduce(sums, all, 2, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather(&count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gather(ends, 2, MPI_UNSIGNED, borders, 2, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int r = 0; r < size; r++) total += counts[r], most = counts[r] > most ? counts[r] : most;
        for (int i = 1; i < 2 * size; i++) sorted &= borders[i - 1] <= borders[i];
        printf("%d elements, sum kept: %s\n", total, all[0] == all[1] ? "yes" : "no");
        printf("sorted on each rank and between ranks: %s\n", sorted ? "yes" : "no");
        printf("no rank has more than half: %s\n", most <= total / 2 ? "yes" : "no");
    }
    free(mine), free(got), free(borders);
    MPI_Finalize();
    return 0;
}
