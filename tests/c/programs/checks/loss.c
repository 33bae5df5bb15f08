/* Rank 1 is killed; the others wait for it, in five ways. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void tell(int error)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    puts(class == MPI_ERR_PROC_ABORTED ? "lost" : "not lost");
}

int main(int argc, char **argv)
{
    static char much[1 << 20];
    int rank, word;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) {
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    tell(MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    tell(MPI_Barrier(MPI_COMM_WORLD));
    tell(MPI_Send(much, sizeof much, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    tell(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Irecv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    tell(MPI_Wait(&request, MPI_STATUS_IGNORE));
    fflush(stdout);
    _exit(0); /* MPI_Finalize would wait for rank 1, too */
}
