/* A matrix of 2880 x 2000 times one of 2000 x 450, by a master and its workers.
 *
 *     matrix [ROWS INNER COLUMNS]
 *
 * Rank 0 divides the rows of A among the workers, sends B to all, and does not compute. It prints a
 * line of JSON: the longest time that a worker has computed, and the time from the first send to the
 * last receive. Source: Chou, Nestinger and Cheng, "Ch MPI", Fig. 10 and 11.
 */
#include <math.h>

#include "measure.h"

static void multiply(const double *a, const double *b, double *c, int rows, int inner, int columns)
{
    for (int i = 0; i < rows; i++) {
        double *restrict out = c + (size_t)i * columns;
        for (int j = 0; j < columns; j++)
            out[j] = 0.0;
        for (int k = 0; k < inner; k++) {
            const double factor = a[(size_t)i * inner + k];
            const double *restrict row = b + (size_t)k * columns;
            for (int j = 0; j < columns; j++)
                out[j] += factor * row[j];
        }
    }
}

static double *matrix(int rows, int columns)
{
    double *found = calloc((size_t)rows * columns + 1, sizeof(double));
    if (found == NULL)
        fail("not enough memory for a matrix of this size");
    return found;
}

/* The first row of a worker's share; for the number after the last worker, the number of rows. */
static int first_row(int worker, int workers, int rows)
{
    return (int)((long)rows * (worker - 1) / workers);
}

static void lead(int workers, int rows, int inner, int columns)
{
    double *a = matrix(rows, inner), *b = matrix(inner, columns), *c = matrix(rows, columns);
    double longest = 0.0;
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < inner; k++)
            a[(size_t)i * inner + k] = i + k;
    for (int k = 0; k < inner; k++)
        for (int j = 0; j < columns; j++)
            b[(size_t)k * columns + j] = k == j % inner ? j : 0.0;

    double start = MPI_Wtime();
    MPI_Bcast(b, inner * columns, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int worker = 1; worker <= workers; worker++) {
        int first = first_row(worker, workers, rows);
        int count = first_row(worker + 1, workers, rows) - first;
        MPI_Send(a + (size_t)first * inner, count * inner, MPI_DOUBLE, worker, 1, MPI_COMM_WORLD);
    }
    for (int worker = 1; worker <= workers; worker++) {
        int first = first_row(worker, workers, rows);
        int count = first_row(worker + 1, workers, rows) - first;
        double seconds;
        MPI_Recv(c + (size_t)first * columns, count * columns, MPI_DOUBLE, worker, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&seconds, 1, MPI_DOUBLE, worker, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        longest = seconds > longest ? seconds : longest;
    }
    double all = MPI_Wtime() - start;

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            double right = (double)(i + j % inner) * j;
            if (fabs(c[(size_t)i * columns + j] - right) > 1e-9 * fabs(right))
                fail("the product is wrong");
        }
    printf("{\"what\": \"matrix\", \"workers\": %d, \"seconds\": %.6f, \"all_seconds\": %.6f}\n",
           workers, longest, all);
    free(a), free(b), free(c);
}

static void work(int worker, int workers, int rows, int inner, int columns)
{
    int count = first_row(worker + 1, workers, rows) - first_row(worker, workers, rows);
    double *a = matrix(count, inner), *b = matrix(inner, columns), *c = matrix(count, columns);
    MPI_Bcast(b, inner * columns, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Recv(a, count * inner, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double start = MPI_Wtime();
    multiply(a, b, c, count, inner, columns);
    double seconds = MPI_Wtime() - start;
    MPI_Send(c, count * columns, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
    MPI_Send(&seconds, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
    free(a), free(b), free(c);
}

int main(int argc, char *argv[])
{
    int rank, size, rows = 2880, inner = 2000, columns = 450;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc == 4)
        rows = atoi(argv[1]), inner = atoi(argv[2]), columns = atoi(argv[3]);
    if (size < 2 || rows < size - 1 || inner < 1 || columns < 1 || (argc != 1 && argc != 4))
        fail("usage: 2 processes or more of: matrix [ROWS INNER COLUMNS], a row or more for each");
    if (rank == 0)
        lead(size - 1, rows, inner, columns);
    else
        work(rank, size - 1, rows, inner, columns);
    MPI_Finalize();
    return 0;
}
