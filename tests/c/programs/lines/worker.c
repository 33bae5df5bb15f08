/* Runs beside a Python program with mpi4py: takes part in all that master.py of test_beside.py does;
 * or, with a word, ends in the wrong way while master.py waits. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void work(void)
{
    static int many[300000];
    double numbers[1000], sum = 0;
    int rank, count, least;
    long one, all;
    char text[9] = "";
    MPI_Comm half;
    MPI_Status status;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(numbers, 1000, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 1000; i++)
        sum += numbers[i] * rank;
    MPI_Send(&sum, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
    MPI_Recv(many, 300000, MPI_INT, 0, 6, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    for (int i = 0; i < count; i++)
        many[i] *= 2;
    MPI_Send(many, count, MPI_INT, 0, 7, MPI_COMM_WORLD);
    one = rank;
    MPI_Allreduce(&one, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Recv(text, 8, MPI_CHAR, 0, 8, MPI_COMM_WORLD, &status);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(&rank, &least, 1, MPI_INT, MPI_MIN, half);
    printf("worker %d: %ld %s %d\n", rank, all, text, least);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    const char *deed = argc > 1 ? argv[1] : "";
    int zero = 0;
    MPI_Init(&argc, &argv);
    if (!*deed)
        work();
    if (!strcmp(deed, "fail"))
        MPI_Send(&zero, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
    if (!strcmp(deed, "exit"))
        exit(3);
    if (!strcmp(deed, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(deed, "stay")) {
        puts("in");
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
