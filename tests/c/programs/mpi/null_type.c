/* MPI_DATATYPE_NULL where nothing is sent: with a count of 0 it is taken, as MPICH takes it.
 *
 * ranks: 3
 * expected:
 *   neighbours have exchanged 1 of 3 parts: yes
 *   messages of nothing: 0 bytes
 *   with a count of 1: MPI_ERR_TYPE
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, bytes, class, sent, got = -1;
    int out[3] = {0}, into[3] = {0}, nowhere[3] = {0};
    MPI_Datatype out_types[3], into_types[3];
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int other = 0; other < size; other++) out_types[other] = into_types[other] = MPI_DATATYPE_NULL;
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    out[next] = into[last] = 1;
    out_types[next] = into_types[last] = MPI_INT;
    sent = rank;
    MPI_Alltoallw(&sent, out, nowhere, out_types, &got, into, nowhere, into_types, MPI_COMM_WORLD);
    if (rank == 0) printf("neighbours have exchanged 1 of %d parts: %s\n", size, got == last ? "yes" : "no");

    MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, next, 0, NULL, 0, MPI_DATATYPE_NULL, last, 0, MPI_COMM_WORLD, &status);
    MPI_Bcast(NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (rank == 0) printf("messages of nothing: %d bytes\n", bytes);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(&sent, 1, MPI_DATATYPE_NULL, next, 0, MPI_COMM_WORLD), &class);
    if (rank == 0) printf("with a count of 1: %s\n", class == MPI_ERR_TYPE ? "MPI_ERR_TYPE" : "another class");
    MPI_Finalize();
    return 0;
}
