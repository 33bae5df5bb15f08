/* Values of several types in one message: packed by the sender, unpacked piece by piece.
 *
 * ranks: 2
 * expected:
 *   n = 3, name = pressure
 *   1.00 1.50 2.00
 *   all was unpacked: yes
 *   packed by a type, read as numbers: 7 8 9
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, n = 3, at = 0, room, more, length;
    char name[16] = "";
    double values[3] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm world = MPI_COMM_WORLD;
    if (rank == 0) {
        strcpy(name, "pressure");
        length = strlen(name) + 1;
        for (int i = 0; i < n; i++) values[i] = 1 + i * 0.5;
        MPI_Pack_size(2, MPI_INT, world, &room);
        MPI_Pack_size(length, MPI_CHAR, world, &more);
        room += more;
        MPI_Pack_size(n, MPI_DOUBLE, world, &more);
        room += more;
        char *packed = malloc(room);
        MPI_Pack(&n, 1, MPI_INT, packed, room, &at, world);
        MPI_Pack(&length, 1, MPI_INT, packed, room, &at, world);
        MPI_Pack(name, length, MPI_CHAR, packed, room, &at, world);
        MPI_Pack(values, n, MPI_DOUBLE, packed, room, &at, world);
        MPI_Send(packed, at, MPI_PACKED, 1, 0, world);
        free(packed);
        int numbers[] = {7, 0, 8, 0, 9, 0};
        MPI_Datatype odd;
        MPI_Type_vector(3, 1, 2, MPI_INT, &odd);
        MPI_Type_commit(&odd);
        MPI_Pack_size(1, odd, world, &room);
        packed = malloc(room);
        at = 0;
        MPI_Pack(numbers, 1, odd, packed, room, &at, world);
        MPI_Send(packed, at, MPI_PACKED, 1, 1, world);
        MPI_Type_free(&odd);
        free(packed);
    } else {
        MPI_Status status;
        MPI_Probe(0, 0, world, &status);
        MPI_Get_count(&status, MPI_PACKED, &room);
        char *packed = malloc(room);
        MPI_Recv(packed, room, MPI_PACKED, 0, 0, world, &status);
        MPI_Unpack(packed, room, &at, &n, 1, MPI_INT, world);
        MPI_Unpack(packed, room, &at, &length, 1, MPI_INT, world);
        MPI_Unpack(packed, room, &at, name, length, MPI_CHAR, world);
        MPI_Unpack(packed, room, &at, values, n, MPI_DOUBLE, world);
        printf("n = %d, name = %s\n%.2f %.2f %.2f\n", n, name, values[0], values[1], values[2]);
        printf("all was unpacked: %s\n", at == room ? "yes" : "no");
        free(packed);
        int numbers[3];
        MPI_Recv(numbers, 3, MPI_INT, 0, 1, world, &status);
        printf("packed by a type, read as numbers: %d %d %d\n", numbers[0], numbers[1], numbers[2]);
    }
    MPI_Finalize();
    return 0;
}
