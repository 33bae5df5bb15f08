/* 2 ranks. One forgets MPI_Win_complete before it waits for a message.
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Recv(source=1, tag=5) in window_never_completed.c, line 23 (main).
 * says: 1 is in MPI_Win_wait(win=board) and waits for 0 in window_never_completed.c, line 27 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, there, number = 0, memory = 0;
    MPI_Win win;
    MPI_Group all, other;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    there = 1 - rank;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "board");
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &there, &other);
    if (rank == 0) {
        MPI_Win_start(other, 0, win);
        MPI_Recv(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_complete(win);
    } else {
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win);
        MPI_Send(&number, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
