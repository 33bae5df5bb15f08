/* 2 ranks. Both wait for ever, but a signal handler may end the program: that is no deadlock.
 * title: It would be a deadlock but for 0's handler of SIGUSR1 and 0's timer (SIGALRM): 0 → 1 → 0
 * says: That may end: handler of SIGUSR1 and timer (SIGALRM) could go on.
 */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

static void give_up(int signal)
{
    (void)signal;
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
    int rank, number;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        signal(SIGUSR1, give_up);
        alarm(1000);
    }
    MPI_Recv(&number, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
