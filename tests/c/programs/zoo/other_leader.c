/* 4 ranks: the second half is given a wrong leader of the first.
 * title: Deadlock: 0 → 2 → 1 → 0
 * says: 0 is in MPI_Intercomm_create(local_leader=0, peer_comm=MPI_COMM_WORLD, remote_leader=2, tag=7, comm=half) and waits for 2 in other_leader.c, line 19 (main).
 * says: 2 is in MPI_Intercomm_create(local_leader=0, peer_comm=MPI_COMM_WORLD, remote_leader=1, tag=7, comm=half) and waits for 1 in
 * says: 3 is in MPI_Intercomm_create(local_leader=0, tag=7, comm=half) and waits for 2 in
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Comm half, both;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &half);
    MPI_Comm_set_name(half, "half");
    /* The leader of ranks 0 and 1 is 0. */
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 1, 7, &both);
    MPI_Finalize();
    return 0;
}
