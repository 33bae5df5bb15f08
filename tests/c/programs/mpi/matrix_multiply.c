/* C = A B: blocks of rows of A are scattered, B goes to all, blocks of C are gathered.
 *
 * ranks: 4
 * arguments: 96
 * expected:
 *   96 x 96 on 4 ranks: 0 wrong elements
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, n = argc > 1 ? atoi(argv[1]) : 64;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (n % size) MPI_Abort(MPI_COMM_WORLD, 1);
    int rows = n / size;
    double *a = NULL, *c = NULL, *b = malloc(sizeof(double) * n * n);
    double *mine = malloc(sizeof(double) * rows * n), *product = calloc(rows * n, sizeof(double));
    if (rank == 0) {
        a = malloc(sizeof(double) * n * n);
        c = malloc(sizeof(double) * n * n);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) a[i * n + j] = i + 1, b[i * n + j] = j % 7;
    }
    MPI_Scatter(a, rows * n, MPI_DOUBLE, mine, rows * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Bcast(b, n * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) product[i * n + j] += mine[i * n + k] * b[k * n + j];
    MPI_Gather(product, rows * n, MPI_DOUBLE, c, rows * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int wrong = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) wrong += c[i * n + j] != (double)n * (i + 1) * (j % 7);
        printf("%d x %d on %d ranks: %d wrong elements\n", n, n, size, wrong);
    }
    free(a), free(b), free(c), free(mine), free(product);
    MPI_Finalize();
    return 0;
}
