/* 4 ranks: two communicators have one name; a rank in both calls them in another order.
 * title: Deadlock: 1 → 2 → 1
 * says: 0 and 1 are in MPI_Barrier(comm=rows) and wait for 2 in communicators_of_one_name.c, line 29 (main).
 * says: There are two communicators named rows. 1 is in a call of that of 0, 1 and 2, and 2 in one of that of 1, 2 and 3: a process in both must call them in the same order as the others.
 */
#include <mpi.h>

static MPI_Comm rows(int is_member)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, is_member ? 0 : MPI_UNDEFINED, 0, &comm);
    if (is_member)
        MPI_Comm_set_name(comm, "rows");
    return comm;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Comm comms[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    comms[rank == 2] = rows(rank < 3);
    comms[rank != 2] = rows(rank > 0);
    for (int nth = 0; nth < 2; nth++)
        if (comms[nth] != MPI_COMM_NULL)
            MPI_Barrier(comms[nth]);
    MPI_Finalize();
    return 0;
}
