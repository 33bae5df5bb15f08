/* The sieve of Eratosthenes: rank 0 knows the small primes and tells each of them to all.
 *
 * ranks: 4
 * arguments: 100000
 * expected:
 *   9592 primes up to 100000
 *   the largest is 99991
 *   pairs of primes with a difference of 2: 1224
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, n = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int each = (n + size) / size, first = rank * each, last = first + each - 1;
    if (last > n) last = n;
    char *crossed = calloc(each + 2, 1);
    for (int prime = 2; (long)prime * prime <= n;) {
        int start = prime * prime > first ? prime * prime : (first + prime - 1) / prime * prime;
        for (int i = start; i <= last; i += prime) crossed[i - first] = 1;
        if (rank == 0)
            do prime++;
            while (crossed[prime]);
        MPI_Bcast(&prime, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) crossed[0] = crossed[1] = 1;
    int found[2] = {0, 0}, all[2], largest = 0, top;
    /* The two numbers after the last one are the next rank's first. */
    int left = rank ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    char after[2] = {1, 1};
    MPI_Sendrecv(crossed, 2, MPI_CHAR, left, 0, after, 2, MPI_CHAR, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = first; i <= last; i++) {
        if (crossed[i - first]) continue;
        found[0]++;
        largest = i;
        found[1] += !(i + 2 <= last ? crossed[i + 2 - first] : after[i + 1 - last]);
    }
    MPI_Reduce(found, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&largest, &top, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d primes up to %d\nthe largest is %d\n", all[0], n, top);
        printf("pairs of primes with a difference of 2: %d\n", all[1]);
    }
    free(crossed);
    MPI_Finalize();
    return 0;
}
