/* The trapezoid rule for x*x from 0 to 3; each rank has an interval of its own, rank 0 adds.
 *
 * ranks: 3
 * arguments: 0 3 3072
 * expected:
 *   rank 1 gives 2.333333
 *   rank 2 gives 6.333333
 *   the integral is 9.000000
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double f(double x) { return x * x; }

static double trapezoids(double left, double right, int count) {
    double h = (right - left) / count, sum = (f(left) + f(right)) / 2;
    for (int i = 1; i < count; i++) sum += f(left + i * h);
    return sum * h;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4) {
        fprintf(stderr, "usage: trapezoid LEFT RIGHT COUNT\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double left = atof(argv[1]), width = (atof(argv[2]) - left) / size;
    int count = atoi(argv[3]) / size;
    double mine = trapezoids(left + rank * width, left + (rank + 1) * width, count);
    if (rank > 0) {
        MPI_Send(&mine, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    } else {
        double total = mine;
        for (int source = 1; source < size; source++) {
            MPI_Recv(&mine, 1, MPI_DOUBLE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("rank %d gives %.6f\n", source, mine);
            total += mine;
        }
        printf("the integral is %.6f\n", total);
    }
    MPI_Finalize();
    return 0;
}
