/* Pi by the midpoint rule: the integral of 4 / (1 + x²) from 0 to 1, divided among processes.
 *
 *     cpi [INTERVALS [TIMES]]
 *
 * Asks for numbers of intervals until it gets 0; with an argument it does not ask, and prints the
 * time of the loop, TIMES times, as lines of JSON.
 * Source: Chou, Nestinger and Cheng, "Ch MPI", Fig. 4 (from Gropp, Lusk and Skjellum), Table 2.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* The area of every `size`-th rectangle, from number `rank` + 1 on. */
static double area(int n, int rank, int size)
{
    double h = 1.0 / n, sum = 0.0;
    for (int i = rank + 1; i <= n; i += size) {
        double x = h * (i - 0.5);
        sum += 4.0 / (1.0 + x * x);
    }
    return h * sum;
}

static double pi_of(double mine)
{
    double pi = 0.0;
    MPI_Reduce(&mine, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return pi;
}

static void ask(int rank, int size)
{
    for (;;) {
        int n = 0;
        if (rank == 0) {
            printf("Enter the number of intervals: (0 quits) ");
            fflush(stdout);
            if (scanf("%d", &n) != 1)
                n = 0;
        }
        MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (n <= 0)
            break;
        double pi = pi_of(area(n, rank, size));
        if (rank == 0)
            printf("PI is %.16f, Error is %.16f\n", pi, fabs(pi - M_PI));
    }
}

int main(int argc, char *argv[])
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2)
        ask(rank, size);
    for (int i = 0; argc > 1 && i < (argc > 2 ? atoi(argv[2]) : 1); i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime(), mine = area(atoi(argv[1]), rank, size);
        double seconds = MPI_Wtime() - start, longest, pi = pi_of(mine);
        MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("{\"what\": \"cpi\", \"seconds\": %.9f, \"error\": %.3g}\n", longest,
                   fabs(pi - M_PI));
    }
    MPI_Finalize();
    return 0;
}
