/* Communicators of all kinds, each with messages and collectives that stay its own. */
#include "check.h"

/* The sum of all world ranks in a communicator, and that its members are these. */
static void works(MPI_Comm comm, int members, int sum)
{
    int own, number, all = rank;
    MPI_Comm_rank(comm, &own), MPI_Comm_size(comm, &number);
    CHECK(number == members);
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, comm);
    CHECK(all == sum);
    int in = -1;
    MPI_Sendrecv(&own, 1, MPI_INT, (own + 1) % number, 0, &in, 1, MPI_INT,
                 (own + number - 1) % number, 0, comm, MPI_STATUS_IGNORE);
    CHECK(in == (own + number - 1) % number);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    int all = size * (size - 1) / 2, result;
    MPI_Comm copy, half, made, grid, row, later, merged, inter, shared;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy), works(copy, size, all);
    MPI_Comm_compare(copy, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_CONGRUENT);
    /* A message in one communicator is not received in another. */
    int out = 1, in = 0, flag;
    MPI_Request request;
    MPI_Isend(&out, 1, MPI_INT, rank, 0, copy, &request);
    MPI_Iprobe(rank, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Recv(&in, 1, MPI_INT, rank, 0, copy, MPI_STATUS_IGNORE), MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Even and odd, in reverse order. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int members = (size + 1 - rank % 2) / 2, sum = 0, place = 0;
    for (int r = rank % 2; r < size; r += 2) sum += r, place += r > rank;
    works(half, members, sum);
    MPI_Comm_rank(half, &result);
    CHECK(result == place);
    MPI_Comm_split(MPI_COMM_WORLD, rank ? 1 : MPI_UNDEFINED, 0, &made);
    if (rank) works(made, size - 1, all), MPI_Comm_free(&made);
    else CHECK(made == MPI_COMM_NULL);
    MPI_Comm_split_type(copy, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    works(shared, size, all), MPI_Comm_free(&shared);
    /* Groups. */
    MPI_Group whole, but_last;
    MPI_Comm_group(MPI_COMM_WORLD, &whole);
    MPI_Group_excl(whole, size > 1, &(int){size - 1}, &but_last);
    int less = size > 1 ? size - 1 : 1;
    MPI_Comm_create(copy, but_last, &made);
    if (made != MPI_COMM_NULL) works(made, less, less * (less - 1) / 2), MPI_Comm_free(&made);
    if (rank < less) {
        MPI_Comm_create_group(copy, but_last, 7, &made);
        works(made, less, less * (less - 1) / 2), MPI_Comm_free(&made);
    }
    MPI_Group_free(&whole), MPI_Group_free(&but_last);
    /* A grid and its rows. */
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2];
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(copy, 2, dims, periods, 1, &grid);
    works(grid, size, all);
    MPI_Cart_coords(grid, rank, 2, coords);
    MPI_Cart_sub(grid, (int[]){0, 1}, &row);
    MPI_Comm_size(row, &result);
    CHECK(result == dims[1]);
    int first = coords[0] * dims[1];
    works(row, dims[1], dims[1] * first + dims[1] * (dims[1] - 1) / 2);
    MPI_Comm_free(&row), MPI_Comm_free(&grid);
    /* A duplicate that comes while other things go on. */
    MPI_Comm_idup(copy, &later, &request);
    works(copy, size, all);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    works(later, size, all), MPI_Comm_free(&later);
    /* Two groups that talk to each other. */
    if (size > 1) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? (size - 1) / 2 * 2 : (size - 2) / 2 * 2 + 1, 9, &inter);
        MPI_Comm_remote_size(inter, &result);
        CHECK(result == size - members);
        MPI_Comm_rank(inter, &place);
        if (place < result) {
            int theirs = -1;
            MPI_Sendrecv(&rank, 1, MPI_INT, place, 0, &theirs, 1, MPI_INT, place, 0, inter, MPI_STATUS_IGNORE);
            CHECK(theirs % 2 != rank % 2);
        }
        MPI_Intercomm_merge(inter, rank % 2, &merged);
        works(merged, size, all);
        MPI_Comm_rank(merged, &result);
        CHECK((result < (size + 1) / 2) == (rank % 2 == 0));
        MPI_Comm_free(&merged), MPI_Comm_free(&inter);
    }
    MPI_Comm_free(&half), MPI_Comm_free(&copy);
    CHECK(copy == MPI_COMM_NULL);
    if (rank == 0) puts("all communicators are right");
    MPI_Finalize();
    return 0;
}
