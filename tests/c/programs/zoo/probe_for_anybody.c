/* 3 ranks. All wait for anybody.
 * title: Deadlock: 0, 1 and 2 wait for a message that nobody will send
 * says: 0, 1 and 2 are in MPI_Probe(source=MPI_ANY_SOURCE, tag=5) in probe_for_anybody.c, line 12 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
    MPI_Finalize();
    return 0;
}
