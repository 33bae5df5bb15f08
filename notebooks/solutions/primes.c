#include <mpi.h>

int primes(int limit)
{
    int rank, size, mine = 0, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Write here:
    ### BEGIN SOLUTION */
    for (int n = 2 + rank; n < limit; n += size) {
        int is_prime = 1;
        for (int d = 2; d * d <= n; d++)
            if (n % d == 0) {
                is_prime = 0;
                break;
            }
        mine += is_prime;
    }
    MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    /* ### END SOLUTION
    */
    return rank == 0 ? all : 0;
}
