// In C++: a farm whose tasks make tasks (quadrature that halves an interval until it is exact).
/*
 * ranks: 4
 * expected:
 *   integral of sqrt from 0 to 1: 0.666667
 *   every worker has worked: yes
 *   tasks as on one rank: yes
 */
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <deque>
#include <vector>

struct Task { double left, right; };
struct Answer { double value, split; }; // split: the two halves are to be done

enum Tag { work, answer, end };

static Answer solve(Task task) {
    auto simpson = [](double a, double b) {
        return (b - a) / 6 * (std::sqrt(a) + 4 * std::sqrt((a + b) / 2) + std::sqrt(b));
    };
    double middle = (task.left + task.right) / 2, once = simpson(task.left, task.right);
    double twice = simpson(task.left, middle) + simpson(middle, task.right);
    return {twice, std::fabs(once - twice) > 1e-8 ? 1.0 : 0.0};
}

/* Take an answer into the sum, or its halves onto the list. */
static void take(Task task, Answer got, double &sum, std::deque<Task> &tasks) {
    double middle = (task.left + task.right) / 2;
    if (got.split > 0) tasks.insert(tasks.end(), {{task.left, middle}, {middle, task.right}});
    else sum += got.value;
}

static void lead(int size) {
    std::deque<Task> tasks, list;
    for (int i = 0; i < 8; i++) tasks.push_back({i / 8.0, (i + 1) / 8.0});
    list = tasks;
    std::vector<int> idle, worked(size);
    std::vector<Task> given(size);
    for (int worker = 1; worker < size; worker++) idle.push_back(worker);
    double sum = 0, alone = 0;
    int done = 0, done_alone = 0;
    while (!tasks.empty() || static_cast<int>(idle.size()) < size - 1) {
        while (!tasks.empty() && !idle.empty()) {
            int worker = idle.back();
            idle.pop_back();
            given[worker] = tasks.front();
            tasks.pop_front();
            MPI_Send(&given[worker], 2, MPI_DOUBLE, worker, work, MPI_COMM_WORLD);
        }
        Answer got;
        MPI_Status status;
        MPI_Recv(&got, 2, MPI_DOUBLE, MPI_ANY_SOURCE, answer, MPI_COMM_WORLD, &status);
        worked[status.MPI_SOURCE]++, done++;
        idle.push_back(status.MPI_SOURCE);
        take(given[status.MPI_SOURCE], got, sum, tasks);
    }
    bool all = true;
    for (int worker = 1; worker < size; worker++) {
        MPI_Send(nullptr, 0, MPI_DOUBLE, worker, end, MPI_COMM_WORLD);
        all = all && worked[worker] > 0;
    }
    for (; !list.empty(); done_alone++) {
        Task task = list.front();
        list.pop_front();
        take(task, solve(task), alone, list);
    }
    std::printf("integral of sqrt from 0 to 1: %.6f\nevery worker has worked: %s\n", sum, all ? "yes" : "no");
    std::printf("tasks as on one rank: %s\n", done == done_alone && std::fabs(sum - alone) < 1e-12 ? "yes" : "no");
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) lead(size);
    for (MPI_Status status; rank > 0;) {
        Task task;
        MPI_Recv(&task, 2, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == end) break;
        Answer result = solve(task);
        MPI_Send(&result, 2, MPI_DOUBLE, 0, answer, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
