/* Pi by the midpoint rule, asking for the number of intervals until it is 0.
 *
 * ranks: 4
 * stdin: 10
 * stdin: 1000
 * stdin: 100000
 * stdin: 0
 * expected:
 *   intervals (0 ends)? pi is about 3.1424259850, error below 1e-03
 *   intervals (0 ends)? pi is about 3.1415927369, error below 1e-06
 *   intervals (0 ends)? pi is about 3.1415926536, error below 1e-10
 *   intervals (0 ends)?
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    const double exact = 3.14159265358979323846;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (;;) {
        int n = 0;
        if (rank == 0) {
            printf("intervals (0 ends)? ");
            fflush(stdout);
            if (scanf("%d", &n) != 1) n = 0;
        }
        MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (n == 0) break;
        double h = 1.0 / n, sum = 0, pi;
        for (int i = rank; i < n; i += size) {
            double x = h * (i + 0.5);
            sum += 4.0 / (1.0 + x * x);
        }
        sum *= h;
        MPI_Reduce(&sum, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            double error = fabs(pi - exact);
            const char *below = error < 1e-10 ? "1e-10" : error < 1e-6 ? "1e-06" : "1e-03";
            printf("pi is about %.10f, error below %s\n", pi, below);
        }
    }
    if (rank == 0) printf("\n");
    MPI_Finalize();
    return 0;
}
