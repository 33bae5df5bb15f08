/* Groups: sets of ranks, and communicators made from them.
 *
 * ranks: 4
 * expected:
 *   even 2, odd 2, union 4, shared 0, without rank 0: 3
 *   union compared with the world: similar
 *   even's rank 1 is the world's 2
 *   sum over even ranks: 2
 *   members of the second half get 5
 *   rank 0 is in the odd group: no
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, n[5], compared, place = 1, there, me, sum;
    MPI_Group world, even, odd, all, none, but_first, second;
    MPI_Comm evens, half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int evens_are[] = {0, 2}, zero[] = {0}, range[1][3] = {{size / 2, size - 1, 1}};
    MPI_Group_incl(world, 2, evens_are, &even);
    MPI_Group_difference(world, even, &odd);
    MPI_Group_union(even, odd, &all);
    MPI_Group_intersection(even, odd, &none);
    MPI_Group_excl(world, 1, zero, &but_first);
    MPI_Group_range_incl(world, 1, range, &second);
    MPI_Group_size(even, &n[0]), MPI_Group_size(odd, &n[1]), MPI_Group_size(all, &n[2]);
    MPI_Group_size(none, &n[3]), MPI_Group_size(but_first, &n[4]);
    MPI_Group_compare(world, all, &compared);
    MPI_Group_translate_ranks(even, 1, &place, world, &there);
    MPI_Group_rank(odd, &me);
    if (rank == 0) {
        printf("even %d, odd %d, union %d, shared %d, without rank 0: %d\n", n[0], n[1], n[2], n[3], n[4]);
        const char *as = compared == MPI_SIMILAR ? "similar" : compared == MPI_IDENT ? "identical" : "different";
        printf("union compared with the world: %s\neven's rank 1 is the world's %d\n", as, there);
    }
    MPI_Comm_create(MPI_COMM_WORLD, even, &evens);
    if (evens != MPI_COMM_NULL) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, evens);
        if (rank == 0) printf("sum over even ranks: %d\n", sum);
        MPI_Comm_free(&evens);
    }
    if (rank >= size / 2) { /* only members call this */
        MPI_Comm_create_group(MPI_COMM_WORLD, second, 0, &half);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
        if (rank == size - 1) MPI_Send(&sum, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Comm_free(&half);
    } else if (rank == 0) {
        MPI_Recv(&sum, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("members of the second half get %d\n", sum);
        printf("rank 0 is in the odd group: %s\n", me == MPI_UNDEFINED ? "no" : "yes");
    }
    MPI_Group_free(&world), MPI_Group_free(&even), MPI_Group_free(&odd), MPI_Group_free(&all);
    MPI_Group_free(&none), MPI_Group_free(&but_first), MPI_Group_free(&second);
    MPI_Finalize();
    return 0;
}
