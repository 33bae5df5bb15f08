/* A histogram: the bounds by MIN and MAX, the counts by one reduction of an array.
 *
 * ranks: 4
 * expected:
 *   1000 values from 0 to 99
 *   [ 0, 20) ####
 *   [20, 40) ####
 *   [40, 60) ####
 *   [60, 80) ####
 *   [80,100) ####
 */
#include <mpi.h>
#include <stdio.h>
#define BINS 5

int main(int argc, char **argv) {
    int rank, size, counts[BINS] = {0}, all[BINS], low = 1000, high = -1, least, most, n = 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = rank; i < n; i += size) {
        int value = i * 37 % 100;
        counts[value / (100 / BINS)]++;
        if (value < low) low = value;
        if (value > high) high = value;
    }
    MPI_Reduce(counts, all, BINS, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&low, &least, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&high, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d values from %d to %d\n", n, least, most);
        for (int bin = 0; bin < BINS; bin++) {
            printf("[%2d,%3d) ", bin * 100 / BINS, (bin + 1) * 100 / BINS);
            for (int i = 0; i < all[bin] / 50; i++) putchar('#');
            putchar('\n');
        }
    }
    MPI_Finalize();
    return 0;
}
