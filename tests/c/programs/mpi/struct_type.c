/* An array of structures: a struct type, resized to the structure's extent.
 *
 * ranks: 2
 * expected:
 *   size 21, extent as sizeof: yes
 *   A 1.5 (1, 2)
 *   B 2.5 (2, 4)
 *   C 3.5 (3, 6)
 *   the note stayed at home: yes
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

typedef struct {
    char name;
    double weight;
    int note; /* not sent */
    int at[3];
} Thing;

int main(int argc, char **argv) {
    int rank, size;
    MPI_Aint low, extent;
    MPI_Datatype tight, type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int lengths[] = {1, 1, 3};
    MPI_Aint places[] = {offsetof(Thing, name), offsetof(Thing, weight), offsetof(Thing, at)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    MPI_Type_create_struct(3, lengths, places, types, &tight);
    MPI_Type_create_resized(tight, 0, sizeof(Thing), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&tight);
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &low, &extent);
    Thing things[3];
    for (int i = 0; i < 3; i++)
        if (rank == 0) things[i] = (Thing){'A' + i, i + 1.5, 99, {i + 1, 2 * (i + 1), 0}};
        else things[i] = (Thing){'?', 0, 42, {0, 0, 0}};
    if (rank == 0) {
        MPI_Send(things, 3, type, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Status status;
        int count, elements, home = 1;
        MPI_Recv(things, 3, type, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, type, &count);
        MPI_Get_elements(&status, type, &elements);
        if (count != 3 || elements != 15) printf("count %d, elements %d\n", count, elements);
        printf("size %d, extent as sizeof: %s\n", size, low == 0 && extent == sizeof(Thing) ? "yes" : "no");
        for (int i = 0; i < 3; i++) {
            printf("%c %.1f (%d, %d)\n", things[i].name, things[i].weight, things[i].at[0], things[i].at[1]);
            home &= things[i].note == 42;
        }
        printf("the note stayed at home: %s\n", home ? "yes" : "no");
    }
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
