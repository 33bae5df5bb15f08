/* A dot product and a norm of vectors that are dealt out in unequal parts.
 *
 * ranks: 4
 * expected:
 *   parts: 26 25 25 25
 *   x . y = 343400
 *   |x|^2 = 348551
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    const int n = 101;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *counts = malloc(size * sizeof(int)), *starts = malloc(size * sizeof(int));
    for (int r = 0, at = 0; r < size; r++) {
        counts[r] = n / size + (r < n % size);
        starts[r] = at;
        at += counts[r];
    }
    double *x = NULL, *y = NULL;
    if (rank == 0) {
        x = malloc(n * sizeof(double));
        y = malloc(n * sizeof(double));
        for (int i = 0; i < n; i++) x[i] = i + 1, y[i] = i;
    }
    int count = counts[rank];
    double *a = malloc(count * sizeof(double)), *b = malloc(count * sizeof(double));
    MPI_Scatterv(x, counts, starts, MPI_DOUBLE, a, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Scatterv(y, counts, starts, MPI_DOUBLE, b, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double mine[2] = {0, 0}, all[2];
    for (int i = 0; i < count; i++) mine[0] += a[i] * b[i], mine[1] += a[i] * a[i];
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("parts:");
        for (int r = 0; r < size; r++) printf(" %d", counts[r]);
        printf("\nx . y = %.0f\n|x|^2 = %.0f\n", all[0], all[1]);
    }
    free(x), free(y), free(a), free(b), free(counts), free(starts);
    MPI_Finalize();
    return 0;
}
