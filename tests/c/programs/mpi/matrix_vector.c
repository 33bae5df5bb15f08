/* The power method: rows are scattered, each product's vector is gathered by all.
 *
 * ranks: 3
 * expected:
 *   largest eigenvalue 9.000000
 *   eigenvector: 1.000 1.000 1.000 1.000 1.000 1.000
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#define N 6

int main(int argc, char **argv) {
    int rank, size;
    double matrix[N][N], x[N], largest = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = N / size;
    if (rank == 0)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) matrix[i][j] = i == j ? 4 : 1;
    double(*mine)[N] = malloc(rows * sizeof *mine), *part = malloc(rows * sizeof(double));
    MPI_Scatter(matrix, rows * N, MPI_DOUBLE, mine, rows * N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int j = 0; j < N; j++) x[j] = j + 1;
    for (int step = 0; step < 25; step++) {
        double biggest = 0;
        for (int i = 0; i < rows; i++) {
            part[i] = 0;
            for (int j = 0; j < N; j++) part[i] += mine[i][j] * x[j];
            biggest = fmax(biggest, fabs(part[i]));
        }
        MPI_Allgather(part, rows, MPI_DOUBLE, x, rows, MPI_DOUBLE, MPI_COMM_WORLD);
        MPI_Allreduce(&biggest, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        for (int j = 0; j < N; j++) x[j] /= largest;
    }
    if (rank == size - 1) {
        printf("largest eigenvalue %.6f\neigenvector:", largest);
        for (int j = 0; j < N; j++) printf(" %.3f", x[j]);
        printf("\n");
    }
    free(mine), free(part);
    MPI_Finalize();
    return 0;
}
