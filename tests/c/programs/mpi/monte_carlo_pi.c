/* Pi from points thrown into a square; the same points for any number of ranks.
 *
 * ranks: 4
 * arguments: 400000
 * expected:
 *   400000 points
 *   pi is within 0.01: yes
 *   one rank alone counts as many hits: yes
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A number in [0, 1) for each index: no state to hand from rank to rank. */
static double uniform(uint64_t index) {
    uint64_t x = (index + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return ((x ^ (x >> 31)) >> 11) * 0x1.0p-53;
}

static long long hits(long long first, long long points, int step) {
    long long inside = 0;
    for (long long i = first; i < points; i += step) {
        double x = uniform(2 * i), y = uniform(2 * i + 1);
        inside += x * x + y * y < 1;
    }
    return inside;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long long points = argc > 1 ? atoll(argv[1]) : 1000, all = 0;
    long long mine = hits(rank, points, size);
    MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == size - 1) {
        double pi = 4.0 * all / points;
        printf("%lld points\n", points);
        printf("pi is within 0.01: %s\n", pi > 3.1316 && pi < 3.1516 ? "yes" : "no");
        printf("one rank alone counts as many hits: %s\n", hits(0, points, 1) == all ? "yes" : "no");
    }
    MPI_Finalize();
    return 0;
}
