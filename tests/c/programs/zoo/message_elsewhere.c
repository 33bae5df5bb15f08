/* 3 ranks: messages lie in other communicators, of which one has the same name and one has none.
 * says: 0 is in MPI_Recv(source=2, tag=5, comm=rows) in message_elsewhere.c, line 25 (main). 0's inbox holds 1 message that would fit, but lies in another communicator named rows.
 * says: 1 is in MPI_Recv(source=0, tag=5, comm=a duplicate of MPI_COMM_WORLD) in message_elsewhere.c, line 25 (main). 1's inbox holds 1 message that would fit, but lies in another duplicate of MPI_COMM_WORLD.
 * says: 2 is in MPI_Recv(source=1, tag=5, comm=rows) in message_elsewhere.c, line 25 (main). 2's inbox holds 1 message that nearly fits, but lies in communicator cols: tag is 6, not 5.
 */
#include <mpi.h>

enum { ROWS, MORE_ROWS, COLS, PLAIN, MORE_PLAIN, COMMS };

int main(int argc, char **argv)
{
    static const char *const names[] = {"rows", "rows", "cols"};
    static const int given[] = {PLAIN, COLS, MORE_ROWS}, wanted[] = {ROWS, MORE_PLAIN, ROWS};
    int rank, number = 0;
    MPI_Comm comms[COMMS];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int nth = 0; nth < COMMS; nth++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[nth]);
        if (nth < PLAIN)
            MPI_Comm_set_name(comms[nth], names[nth]);
    }
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % 3, rank == 1 ? 6 : 5, comms[given[rank]]);
    MPI_Recv(&number, 1, MPI_INT, (rank + 2) % 3, 5, comms[wanted[rank]], MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
