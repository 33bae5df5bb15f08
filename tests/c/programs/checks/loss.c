/* Rank 1 is killed; the others access its memory, and wait for it in six ways. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *volatile kept;

static void tell(int error)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    puts(class == MPI_ERR_PROC_ABORTED ? "lost" : "not lost");
}

int main(int argc, char **argv)
{
    static char much[1 << 20];
    const int memory = 128 << 20; /* which takes the kernel a while to free */
    int rank, word, error;
    MPI_Request request;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Win_create(much, sizeof much, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window);
    if (rank == 1) {
        kept = memset(malloc(memory), 1, memory);
        usleep(100000);
        kill(getpid(), SIGKILL);
    }
    while (!(error = MPI_Get(&word, 1, MPI_INT, 1, 0, 1, MPI_INT, window)))
        usleep(1000); /* a copy under way would keep the memory, and so hide that it goes first */
    tell(error);
    tell(MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    tell(MPI_Barrier(MPI_COMM_WORLD));
    tell(MPI_Send(much, sizeof much, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    tell(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Irecv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    tell(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Win_unlock_all(window);
    tell(MPI_Finalize()); /* rank 1 has not answered the send */
    fflush(stdout);
    _exit(0);
}
