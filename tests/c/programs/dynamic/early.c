/* A worker has done its part of a call and has ended, while its two parents still wait for each other. */
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static int worker;                      /* its process id */
static const char *begun = "late.begun";

/* Waiting calls look every 100 ms whether others have ended. */
static void until_it_has_ended(void)
{
    while (kill(worker, 0) == 0 || errno != ESRCH)
        usleep(1000);
    usleep(350000);
}

static void late(int signal)
{
    (void) signal;
    fclose(fopen(begun, "w"));
    until_it_has_ended();
}

static void broadcast(const char *call, int *word, int root, MPI_Comm comm)
{
    MPI_Request request;
    if (!strcmp(call, "bcast")) {
        MPI_Bcast(word, 1, MPI_INT, root, comm);
        return;
    }
    MPI_Ibcast(word, 1, MPI_INT, root, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void its_part(const char *call, MPI_Comm parents)
{
    int word = getpid();
    MPI_Comm all;
    MPI_Send(&word, 1, MPI_INT, 0, 0, parents);
    if (!strcmp(call, "any")) {
        MPI_Intercomm_merge(parents, 1, &all);
        MPI_Send(&word, 1, MPI_INT, 0, 1, all);
    } else if (!strcmp(call, "barrier"))
        MPI_Barrier(parents);
    else
        broadcast(call, &word, MPI_ROOT, parents);
    MPI_Comm_disconnect(&parents);
}

static void our_part(const char *call, MPI_Comm workers, int rank)
{
    int word = 0, sum = 0;
    MPI_Comm all;
    if (!strcmp(call, "any")) {
        MPI_Intercomm_merge(workers, 0, &all);
        if (rank > 0)
            until_it_has_ended();
        for (int nth = 0; rank == 0 && nth < 2; nth++, sum += word)
            MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, all, MPI_STATUS_IGNORE);
        if (rank > 0)
            MPI_Send(&rank, 1, MPI_INT, 0, 1, all);
        printf("%s %s\n", call, rank > 0 || sum == worker + 1 ? "GOOD" : "BAD");
        return;
    }
    if (!strcmp(call, "barrier")) {
        struct itimerval soon = {{0, 0}, {0, 50000}};
        if (rank == 1) {
            signal(SIGALRM, late);
            setitimer(ITIMER_REAL, &soon, NULL);
        }
        while (rank == 0 && access(begun, F_OK))
            usleep(1000);
        MPI_Barrier(workers);
        printf("%s GOOD\n", call);
        return;
    }
    if (rank == 0)
        until_it_has_ended();
    broadcast(call, &word, 0, workers);
    printf("%s %s\n", call, word == worker ? "GOOD" : "BAD");
}

int main(int argc, char **argv)
{
    MPI_Comm parents, workers;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL)
        its_part(argv[1], parents);
    for (int nth = 1; parents == MPI_COMM_NULL && nth < argc; nth++) {
        char *words[] = {argv[nth], NULL};
        MPI_Comm_spawn(argv[0], words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &workers, MPI_ERRCODES_IGNORE);
        if (rank == 0)
            MPI_Recv(&worker, 1, MPI_INT, 0, 0, workers, MPI_STATUS_IGNORE);
        MPI_Bcast(&worker, 1, MPI_INT, 0, MPI_COMM_WORLD);
        our_part(argv[nth], workers, rank);
        MPI_Comm_disconnect(&workers);
    }
    MPI_Finalize();
    return 0;
}
