/* Conjugate gradients for a tridiagonal system; dot products by Allreduce, halos to neighbours.
 *
 * ranks: 4
 * expected:
 *   24 unknowns, 24 steps suffice: yes
 *   residual below 1e-8: yes
 *   x = 12 23 33 42 50 57 63 68 72 75 77 78 78 77 75 72 68 63 57 50 42 33 23 12
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#define EACH 6

static double dot(const double *a, const double *b) {
    double mine = 0, all;
    for (int i = 1; i <= EACH; i++) mine += a[i] * b[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    int rank, size, steps = 0;
    double x[EACH + 2] = {0}, r[EACH + 2] = {0}, p[EACH + 2] = {0}, product[EACH + 2] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = rank ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    for (int i = 1; i <= EACH; i++) r[i] = p[i] = 1; /* A = tridiagonal(-1, 2, -1), b = 1 */
    double rr = dot(r, r);
    while (rr > 1e-18 && steps < 100) {
        MPI_Request halo[4];
        MPI_Irecv(&p[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &halo[0]);
        MPI_Irecv(&p[EACH + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &halo[1]);
        MPI_Isend(&p[EACH], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &halo[2]);
        MPI_Isend(&p[1], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &halo[3]);
        MPI_Waitall(4, halo, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= EACH; i++) product[i] = 2 * p[i] - p[i - 1] - p[i + 1];
        double alpha = rr / dot(p, product), before = rr;
        for (int i = 1; i <= EACH; i++) x[i] += alpha * p[i], r[i] -= alpha * product[i];
        rr = dot(r, r);
        for (int i = 1; i <= EACH; i++) p[i] = r[i] + rr / before * p[i];
        steps++;
    }
    double *all = malloc(size * EACH * sizeof(double));
    MPI_Gather(x + 1, EACH, MPI_DOUBLE, all, EACH, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d unknowns, %d steps suffice: %s\n", size * EACH, size * EACH, steps <= size * EACH ? "yes" : "no");
        printf("residual below 1e-8: %s\nx =", sqrt(rr) < 1e-8 ? "yes" : "no");
        for (int i = 0; i < size * EACH; i++) printf(" %.0f", all[i]);
        printf("\n");
    }
    free(all);
    MPI_Finalize();
    return 0;
}
