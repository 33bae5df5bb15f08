/* A task farm: a master hands the lines of a file to workers that are ready, which run them.
 *
 *     farm FILE
 *
 * Each line is a task: commands for the shell. Rank 0 does not run any. It prints a line of JSON
 * for each task that is done (when it began and ended, in seconds from the start, and where), and
 * one for all. Source: Chou, Nestinger and Cheng, "Ch MPI", "Task Farming" (Fig. 13).
 */
#include <string.h>

#include "measure.h"

enum { LONGEST = 4096, TASK = 1, DONE = 2, STOP = 3 };

struct done {
    int task, status;
    double began, ended;
};

static void hand_out(FILE *tasks, int workers)
{
    char line[LONGEST];
    struct done done;
    MPI_Status status;
    double start = MPI_Wtime();
    int given = 0, working = workers;
    while (working > 0) { /* each worker asks first: task -1 is done when it has begun */
        MPI_Recv(&done, sizeof done, MPI_BYTE, MPI_ANY_SOURCE, DONE, MPI_COMM_WORLD, &status);
        if (done.task >= 0) {
            printf("{\"what\": \"task\", \"task\": %d, \"worker\": %d, \"status\": %d, "
                   "\"began\": %.6f, \"ended\": %.6f}\n",
                   done.task, status.MPI_SOURCE, done.status, done.began - start,
                   done.ended - start);
            fflush(stdout);
        }
        int next = fgets(line, sizeof line, tasks) != NULL;
        if (next)
            line[strcspn(line, "\n")] = '\0';
        else
            working--;
        MPI_Send(&given, 1, MPI_INT, status.MPI_SOURCE, next ? TASK : STOP, MPI_COMM_WORLD);
        if (next)
            MPI_Send(line, (int)strlen(line) + 1, MPI_CHAR, status.MPI_SOURCE, TASK,
                     MPI_COMM_WORLD);
        given += next;
    }
    printf("{\"what\": \"farm\", \"workers\": %d, \"tasks\": %d, \"seconds\": %.6f}\n", workers,
           given, MPI_Wtime() - start);
}

static void work(void)
{
    char line[LONGEST];
    struct done done = {.task = -1};
    for (;;) {
        MPI_Status status;
        MPI_Send(&done, sizeof done, MPI_BYTE, 0, DONE, MPI_COMM_WORLD);
        MPI_Recv(&done.task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == STOP)
            return;
        MPI_Recv(line, sizeof line, MPI_CHAR, 0, TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        done.began = MPI_Wtime(); /* ranks of one machine share a clock */
        done.status = system(line);
        done.ended = MPI_Wtime();
    }
}

int main(int argc, char *argv[])
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2 || size < 2)
        fail("usage: 2 processes or more of: farm FILE");
    if (rank == 0) {
        FILE *tasks = fopen(argv[1], "r");
        if (tasks == NULL)
            fail("there is no such file of tasks");
        else {
            hand_out(tasks, size - 1);
            fclose(tasks);
        }
    } else
        work();
    MPI_Finalize();
    return 0;
}
